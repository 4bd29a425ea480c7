"""Settings: read from the environment once, in an entrypoint, into one frozen struct per process.

Each setting is one field: its variable, how the text is parsed, its default. Wrong values stop the process at start, all named.
"""

import os
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, cast, get_type_hints
from urllib.parse import quote, urlsplit

import msgspec

from adloom.core.public_paths import parse_public_prefix
from adloom.core.setting import (
    VALKEY_SCHEMES,
    Secret,
    SecretValueError,
    SettingsError,
    SettingValueError,
    Variable,
    parse_match,
    parse_one,
    parse_share,
    parse_switch,
    parse_url,
    parse_within,
)
from adloom.runtime.files.place import ASSETS_URL, AssetSettings
from adloom.runtime.installation import find_default_data_directory
from adloom.runtime.jobs.cron import Cron, CronError
from adloom.runtime.log_in_settings import SECRET_CHARACTERS_MIN, LogInSettings, TokenSettings, parse_secrets
from adloom.runtime.mail.settings import MailSettings
from adloom.runtime.outbound.settings import OutboundSettings
from adloom.runtime.ports import format_url_host
from adloom.runtime.process.roles import NatsSettings

S = TypeVar("S", bound=msgspec.Struct)
Network = IPv4Network | IPv6Network

DELIVERY_PORT: Final = 8080
CONTROL_PORT: Final = 8090
WORKER_PORT: Final = 3001
AUCTION_RETENTION_DAYS: Final = 7
AUCTION_RECORD_BYTES_PER_SECOND: Final = 2**20
LEARNING_WAIT_SECONDS: Final = 30 * 60
FLEET_WEIGHTS: Final = Variable("ADLOOM_FLEET_WEIGHTS", Path)


class NetworkFileError(Exception):
    """A file that cannot be read, or has a line that is no network."""


def _parse_web_url(text: str) -> str:
    return str(parse_url("http", "https")(text)).rstrip("/")


def _parse_secret(text: str) -> Secret:
    if len(text) < SECRET_CHARACTERS_MIN:
        raise SecretValueError(f"is too short: it needs at least {SECRET_CHARACTERS_MIN} characters.")
    return Secret(text)


def _parse_networks(text: str) -> tuple[Network, ...]:
    networks: list[Network] = []
    for word in text.replace(",", " ").split():
        try:
            networks.append(ip_network(word, strict=False))
        except ValueError:
            expected = "addresses or networks like 10.0.0.0/8, separated by commas"
            raise SettingValueError(expected, word) from None
    return tuple(networks)


def _parse_network_file(text: str) -> tuple[Network, ...]:
    try:
        return read_networks(Path(text))
    except NetworkFileError as error:
        raise SettingValueError(f"a file with a network like 192.0.2.0/24 a line, but {error}") from error


def _parse_cron(text: str) -> Cron:
    try:
        return Cron(text)
    except CronError as error:
        expected = f"a cron expression of five fields like '*/5 * * * *', but {error}"
        raise SettingValueError(expected) from error


def _make_local_url(role: str, port: int) -> Callable[[Mapping[str, str]], str]:
    host, given = f"ADLOOM_{role}_HOST", f"ADLOOM_{role}_PORT"
    return lambda it: f"http://{format_url_host(it.get(host, ''))}:{it.get(given) or port}"


def _choose_default_spool(variables: Mapping[str, str]) -> Path:
    return find_default_data_directory(variables, is_root=os.geteuid() == 0) / "spool"


# Names that other programs know by this, and what to set here instead.
NOT_READ: Final = {
    "SEQ_URL": "is not read: logs are lines of JSON on standard error, which `seqcli ingest --json` takes."
    " Take it out of the environment.",
}

_PORT: Final = parse_within(0, 65535)
_PERMITS: Final = Variable("RATE_LIMIT_PERMITS_PER_MINUTE", parse_within(1, 1_000_000_000))
_ENCRYPTION: Final = Variable("ADLOOM_SECRET", parse_secrets)
_PROXIES: Final = Variable("ADLOOM_TRUSTED_PROXIES", _parse_networks)
_DELIVERY_URL: Final = Variable(
    "ADLOOM_DELIVERY_URL", _parse_web_url, _make_local_url("DELIVERY", DELIVERY_PORT)
)
_CONTROL_URL: Final = Variable("ADLOOM_CONTROL_URL", _parse_web_url, _make_local_url("CONTROL", CONTROL_PORT))
_PREFIX: Final = Variable("ADLOOM_PUBLIC_PREFIX", parse_public_prefix)
_UNBOUND: Final = Variable("ADLOOM_UNBOUND_EVENTS", parse_one("count", "refuse"))
_CURRENCY: Final = Variable("ADLOOM_CURRENCY", parse_match("[A-Z]{3}", "three capitals"))
_COUNT: Final = parse_within(1, 1_000_000_000)
_BOUND: Final = parse_within(0, 1_000_000_000)
_A_DAY: Final = parse_within(1, 86_400)
_HOLD_SECONDS: Final = Variable("ADLOOM_HOLD_SECONDS", _A_DAY)
_SCHEDULE_SYNC: Final = Variable("BANNER_SCHEDULE_SYNC_CRON", _parse_cron)
_LEARNING_WAIT: Final = Variable("ADLOOM_LEARNING_WAIT_SECONDS", _A_DAY)
_CAPPED: Final = parse_one("offer", "withhold")
PAGE_FRESH: Final = Variable("ADLOOM_PAGE_FRESH_HOURS", parse_within(1, 8_760))
PAGE_FRESH_HOURS: Final = 48


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """Where PostgreSQL and Valkey are; the URLs may carry passwords."""

    database_url: Annotated[Secret, Variable("DATABASE_URL", parse_url("postgres", "postgresql"))]
    redis_url: Annotated[Secret, Variable("REDIS_URL", parse_url(*VALKEY_SCHEMES))]


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """How a process is seen from outside."""

    process: Annotated[str, Variable("ADLOOM_PROCESS")]
    log_level: Annotated[
        str, Variable("ADLOOM_LOG_LEVEL", parse_one("debug", "info", "warning", "error"))
    ] = "info"
    log_format: Annotated[str, Variable("ADLOOM_LOG_FORMAT", parse_one("auto", "json", "console"))] = "auto"
    metrics_port: Annotated[int | None, Variable("ADLOOM_METRICS_PORT", _PORT)] = None  # 0 is none, too.
    # Secret: it may carry a password.
    otlp_endpoint: Annotated[
        Secret | None, Variable("OTEL_EXPORTER_OTLP_ENDPOINT", parse_url("http", "https"))
    ] = None


class QuotaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What one account may have and import, and what one caller may ask at once."""

    campaigns_max: Annotated[int, Variable("ADLOOM_ACCOUNT_CAMPAIGNS_MAX", _COUNT)] = 10_000
    banners_max: Annotated[int, Variable("ADLOOM_ACCOUNT_BANNERS_MAX", _COUNT)] = 10_000
    placements_max: Annotated[int, Variable("ADLOOM_ACCOUNT_PLACEMENTS_MAX", _COUNT)] = 10_000
    links_max: Annotated[int, Variable("ADLOOM_ACCOUNT_LINKS_MAX", _COUNT)] = 50_000
    import_items_max: Annotated[int, Variable("ADLOOM_ACCOUNT_IMPORT_ITEMS_MAX", _COUNT)] = 50_000
    requests_at_once: Annotated[int, Variable("ADLOOM_ACTOR_REQUESTS_AT_ONCE", parse_within(1, 1_000))] = 6
    requests_per_minute: Annotated[int, Variable("ADLOOM_ACTOR_REQUESTS_PER_MINUTE", _COUNT)] = 12_000


class AuctionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How auctions run, and what is recorded of them."""

    own_bids: Annotated[str, Variable("ADLOOM_AUCTION_OWN_BIDS", parse_one("ignore", "count"))] = "ignore"
    sample_rate: Annotated[float, Variable("ADLOOM_AUCTION_SAMPLE_RATE", parse_share)] = 1.0
    record_bytes_per_second: Annotated[
        int, Variable("ADLOOM_AUCTION_RECORD_BYTES_PER_SECOND", parse_within(1, 2**40))
    ] = AUCTION_RECORD_BYTES_PER_SECOND
    frequency_when_away: Annotated[str, Variable("ADLOOM_FREQUENCY_WHEN_AWAY", _CAPPED)] = "withhold"
    frequency_without_user: Annotated[str, Variable("ADLOOM_FREQUENCY_WITHOUT_USER", _CAPPED)] = "withhold"
    creative_choice: Annotated[str, Variable("ADLOOM_CREATIVE_CHOICE", parse_one("informed", "ladder"))] = (
        "informed"
    )


class TrafficSettings(msgspec.Struct, frozen=True, kw_only=True):
    """From when on the reports of an offer are doubtful; zero is no bound."""

    # Off: no bound of delivery goes by address.
    has_limits: Annotated[bool, Variable("ADLOOM_TRAFFIC_LIMITS", parse_switch)] = True
    # Of one campaign, an address and an hour. An office of a thousand people sees a campaign three times an hour.
    events_per_hour: Annotated[int, Variable("ADLOOM_CAMPAIGN_EVENTS_PER_ADDRESS_PER_HOUR", _BOUND)] = 3_000
    clicks_per_hour: Annotated[int, Variable("ADLOOM_CAMPAIGN_CLICKS_PER_ADDRESS_PER_HOUR", _BOUND)] = 60
    # A page has to be drawn first, and a person has to see an ad and to move a hand.
    impression_ms_min: Annotated[int, Variable("ADLOOM_IMPRESSION_MS_MIN", parse_within(0, 60_000))] = 100
    click_ms_min: Annotated[int, Variable("ADLOOM_CLICK_MS_MIN", parse_within(0, 60_000))] = 500


class DeliverySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a delivery process."""

    services: Services
    telemetry: Telemetry
    host: Annotated[str, Variable("ADLOOM_DELIVERY_HOST")] = "127.0.0.1"
    port: Annotated[int, Variable("ADLOOM_DELIVERY_PORT", _PORT)] = DELIVERY_PORT
    public_url: Annotated[str, _DELIVERY_URL]
    public_prefix: Annotated[str, _PREFIX] = ""
    token_secret: Annotated[Secret, Variable("ADLOOM_TOKEN_SECRET", _parse_secret)]
    older_token_secrets: Annotated[
        tuple[Secret, ...], Variable("ADLOOM_OLDER_TOKEN_SECRETS", parse_secrets)
    ] = ()
    token_seconds: Annotated[int, Variable("ADLOOM_TOKEN_SECONDS", parse_within(60, 86_400))] = 30 * 60
    geoip_file: Annotated[str | None, Variable("ADLOOM_GEOIP_FILE")] = None
    # An office of a thousand readers who look at ten pages a minute does not meet it.
    rate_limit_permits_per_minute: Annotated[int, _PERMITS] = 12_000
    holds_per_address: Annotated[int, Variable("ADLOOM_HOLDS_PER_ADDRESS", _BOUND)] = 300
    hold_seconds: Annotated[int, _HOLD_SECONDS] = 300
    trusted_proxies: Annotated[tuple[Network, ...], _PROXIES] = ()
    data_centers: Annotated[
        tuple[Network, ...], Variable("ADLOOM_DATA_CENTERS_FILE", _parse_network_file)
    ] = ()
    events_per_address_per_minute: Annotated[
        int, Variable("ADLOOM_EVENTS_PER_ADDRESS_PER_MINUTE", _BOUND)
    ] = 600
    traffic: TrafficSettings = TrafficSettings()
    texts_per_site_per_minute: Annotated[int, Variable("ADLOOM_TEXTS_PER_SITE_PER_MINUTE", _BOUND)] = 600
    texts_per_address_per_minute: Annotated[int, Variable("ADLOOM_TEXTS_PER_ADDRESS_PER_MINUTE", _BOUND)] = 60
    unbound_events: Annotated[str, _UNBOUND] = "count"
    serve_cache_seconds: Annotated[
        int, Variable("BANNER_SERVE_CACHE_TTL_SECONDS", parse_within(0, 86_400))
    ] = 60
    spool_directory: Annotated[
        Path, Variable("ADLOOM_SPOOL_DIR", lambda text: Path(text).absolute(), _choose_default_spool)
    ]
    spool_bytes_max: Annotated[int, Variable("ADLOOM_SPOOL_BYTES_MAX", parse_within(0, 2**40))] = 2**30
    has_served_events: Annotated[bool, Variable("ADLOOM_SERVED_EVENTS", parse_switch)] = False
    has_sample_pages: Annotated[bool, Variable("ADLOOM_SAMPLE_PAGES", parse_switch)] = False
    auctions: AuctionSettings = AuctionSettings()
    assets_url: Annotated[Secret, ASSETS_URL]

    @property
    def link_url(self) -> str:
        """What the addresses in offers begin with."""
        return f"{self.public_url}{self.public_prefix}"


class ControlSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the control process; those of auctions are delivery's, to explain what it does."""

    services: Services
    telemetry: Telemetry
    host: Annotated[str, Variable("ADLOOM_CONTROL_HOST")] = "127.0.0.1"
    port: Annotated[int, Variable("ADLOOM_CONTROL_PORT", _PORT)] = CONTROL_PORT
    public_url: Annotated[str, _CONTROL_URL]
    jwt_secret: Annotated[Secret, Variable("JWT_SECRET", _parse_secret)]
    tokens: TokenSettings = TokenSettings()
    log_in: LogInSettings = LogInSettings()
    quotas: QuotaSettings = QuotaSettings()
    sealing_secrets: Annotated[tuple[Secret, ...], _ENCRYPTION] = ()
    token_secret: Annotated[Secret | None, Variable("ADLOOM_TOKEN_SECRET", _parse_secret)] = None
    rate_limit_permits_per_minute: Annotated[int, _PERMITS] = 60
    trusted_proxies: Annotated[tuple[Network, ...], _PROXIES] = ()
    auctions: AuctionSettings = AuctionSettings()
    unbound_events: Annotated[str, _UNBOUND] = "count"
    public_prefix: Annotated[str, _PREFIX] = ""
    delivery_url: Annotated[str, _DELIVERY_URL] = f"http://127.0.0.1:{DELIVERY_PORT}"
    outbound: OutboundSettings = OutboundSettings()
    mail: MailSettings = MailSettings()
    assets: AssetSettings = AssetSettings()
    assets_url: Annotated[Secret, ASSETS_URL]
    page_fresh_hours: Annotated[int, PAGE_FRESH] = PAGE_FRESH_HOURS
    currency: Annotated[str | None, _CURRENCY] = None


class ConversionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How old the click of a conversion may be, and the currency of values."""

    days: Annotated[int, Variable("ADLOOM_CONVERSION_DAYS", parse_within(1, 365))] = 30
    currency: Annotated[str | None, _CURRENCY] = None


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a worker process."""

    services: Services
    telemetry: Telemetry
    host: Annotated[str, Variable("ADLOOM_WORKER_HOST")] = "127.0.0.1"
    port: Annotated[int, Variable("WORKER_PORT", _PORT)] = WORKER_PORT
    schedule_sync_cron: Annotated[Cron, _SCHEDULE_SYNC] = Cron("* * * * *")
    ledger_retention_days: Annotated[int, Variable("ADLOOM_LEDGER_RETENTION_DAYS", parse_within(1, 30))] = 7
    # At least 9: a repeated event is recognised by the rows of a week, and may be a day old when it comes.
    event_retention_days: Annotated[int, Variable("ADLOOM_EVENT_RETENTION_DAYS", parse_within(9, 3650))] = 90
    # More than the event log is kept: a repeated charge is recognised by its row. Without a number, for ever.
    money_retention_days: Annotated[
        int | None, Variable("ADLOOM_MONEY_RETENTION_DAYS", parse_within(40, 36_500))
    ] = None
    auction_retention_days: Annotated[
        int, Variable("ADLOOM_AUCTION_RETENTION_DAYS", parse_within(1, 365))
    ] = AUCTION_RETENTION_DAYS
    topic_entries_max: Annotated[int, Variable("ADLOOM_TOPIC_ENTRIES_MAX", _BOUND)] = 1_000_000
    stats_rollup_cron: Annotated[Cron, Variable("BANNER_STATS_ROLLUP_CRON", _parse_cron)] = Cron("0 1 * * *")
    hold_seconds: Annotated[int, _HOLD_SECONDS] = 300
    learning_wait_seconds: Annotated[int, _LEARNING_WAIT] = LEARNING_WAIT_SECONDS
    sync_cron: Annotated[Cron, Variable("ADLOOM_SYNC_CRON", _parse_cron)] = Cron("*/5 * * * *")
    sync_lookback_days: Annotated[int, Variable("ADLOOM_SYNC_LOOKBACK_DAYS", parse_within(0, 90))] = 3
    campaigns_per_slot: Annotated[
        int, Variable("ADLOOM_CONTEXTUAL_CAMPAIGNS_PER_SLOT", parse_within(1, 20))
    ] = 3
    fleet_weights: Annotated[Path | None, FLEET_WEIGHTS] = None
    sealing_secrets: Annotated[tuple[Secret, ...], _ENCRYPTION] = ()
    meta_url: Annotated[str | None, Variable("ADLOOM_META_URL")] = None
    conversions: ConversionSettings = ConversionSettings()
    unbound_events: Annotated[str, _UNBOUND] = "count"
    mail: MailSettings = MailSettings()
    control_url: Annotated[str, _CONTROL_URL] = f"http://127.0.0.1:{CONTROL_PORT}"
    nats: NatsSettings = NatsSettings()
    assets: AssetSettings = AssetSettings()
    assets_url: Annotated[Secret, ASSETS_URL]


def read_delivery_settings(variables: Mapping[str, str]) -> DeliverySettings:
    return read_settings(DeliverySettings, variables, process="delivery")


def read_control_settings(variables: Mapping[str, str]) -> ControlSettings:
    return read_settings(ControlSettings, variables, process="control")


def read_worker_settings(variables: Mapping[str, str]) -> WorkerSettings:
    return read_settings(WorkerSettings, variables, process="worker")


def read_token_settings(variables: Mapping[str, str]) -> TokenSettings:
    """Read the settings of a command that signs tokens."""
    return read_settings(TokenSettings, variables, process="adloom")


def read_telemetry_settings(variables: Mapping[str, str]) -> Telemetry:
    """Read the settings of a process that has no others."""
    return read_settings(Telemetry, variables, process="adloom")


def read_networks(path: Path) -> tuple[Network, ...]:
    """Read a file with one network or address a line; `#` begins a comment."""
    try:
        # Some editors begin a file with a byte-order mark.
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise NetworkFileError(f"it cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise NetworkFileError(f"it is no text: {error}") from error
    networks: list[Network] = []
    for number, line in enumerate(lines, 1):
        if text := line.partition("#")[0].strip():
            try:
                networks.append(ip_network(text, strict=False))
            except ValueError as error:
                raise NetworkFileError(f"line {number} is {text!r}") from error
    return tuple(networks)


def add_redis_password(variables: Mapping[str, str]) -> dict[str, str]:
    """Put REDIS_PASSWORD into REDIS_URL if that has none."""
    password, url = variables.get("REDIS_PASSWORD"), variables.get("REDIS_URL")
    if not password or not url:
        return dict(variables)
    parts = urlsplit(url)
    if parts.password is not None:
        return dict(variables)
    user, _, place = parts.netloc.rpartition("@")
    with_password = parts._replace(netloc=f"{user}:{quote(password, safe='')}@{place}").geturl()
    return {**variables, "REDIS_URL": with_password}


def read_settings(kind: type[S], variables: Mapping[str, str], *, process: str) -> S:
    given = {name: value for name, value in variables.items() if value}
    problems = [f"{name} {reason}" for name, reason in NOT_READ.items() if name in given]
    given = add_redis_password(given)
    settings = _read_struct(kind, {"ADLOOM_PROCESS": process, **given}, problems)
    if settings is None:
        raise SettingsError("\n".join(problems))
    return settings


def _read_struct(kind: type[S], variables: Mapping[str, str], problems: list[str]) -> S | None:
    """Read every field, to find all problems; None if there are any."""
    values: dict[str, Any] = {}
    hints = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        hint: Any = hints[field.name]
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            values[field.name] = _read_struct(hint, variables, problems)
            continue
        variable = cast("Variable", hint.__metadata__[0])
        text = variables.get(variable.name)
        try:
            if text:
                values[field.name] = variable.parse(text)
            elif variable.default is not None:
                values[field.name] = variable.default(variables)
            elif field.required:
                problems.append(f"{variable.name} is not set.")
        except SettingValueError as error:
            problems.append(f"{variable.name} is {(error.part or text)!r}: expected {error}.")
        except SecretValueError as error:
            problems.append(f"{variable.name} {error}")
    return None if problems else kind(**values)
