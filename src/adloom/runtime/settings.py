"""Settings: read from the environment once, in an entrypoint, into one frozen struct a process.

A wrong value stops the process at start with the variable, the value and what was expected.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from adloom.runtime.environment import Environment, Network, Secret, SettingsError
from adloom.runtime.jobs.cron import Cron

# The words of settings are found here, wherever they had to be put.
__all__ = (
    "ControlSettings",
    "DeliverySettings",
    "Network",
    "Secret",
    "Services",
    "SettingsError",
    "Telemetry",
    "WorkerSettings",
    "control_settings",
    "delivery_settings",
    "with_dotenv",
    "worker_settings",
)

T = TypeVar("T")

DELIVERY_PORT = 8080
CONTROL_PORT = 8090
WORKER_PORT = 3001
POSTGRES_SCHEMES = frozenset({"postgres", "postgresql"})
VALKEY_SCHEMES = frozenset({"redis", "rediss", "valkey", "valkeys"})
LOGIN_PERMITS_PER_MINUTE = 60
SERVE_CACHE_SECONDS = 60
SERVE_CACHE_SECONDS_MAX = 86_400
TOPIC_ENTRIES_MAX = 1_000_000
LEDGER_RETENTION_DAYS = 7
LEDGER_RETENTION_DAYS_MAX = 30
EVENT_RETENTION_DAYS = 90
# A repeated event is told by the rows of the days before, for a week; and may be a day old when it comes.
EVENT_RETENTION_DAYS_MIN = 9
EVENT_RETENTION_DAYS_MAX = 3650
AUCTION_RETENTION_DAYS = 7
AUCTION_RETENTION_DAYS_MAX = 365
EVENTS_PER_ADDRESS_PER_MINUTE = 600
SPOOL_BYTES_MAX = 2**30
SPOOL_BYTES_MAX_MAX = 2**40
EVERY_MINUTE = "* * * * *"
EVERY_NIGHT = "0 1 * * *"
TOKEN_SECONDS = 30 * 60
HOLD_SECONDS = 300
LEARNING_WAIT_SECONDS = 30 * 60
AUCTION_RECORD_BYTES_PER_SECOND = 2**20
SWITCH = frozenset({"on", "off"})
OWN_BIDS = frozenset({"ignore", "count"})
CAPPED = frozenset({"offer", "withhold"})
LOG_LEVELS = frozenset({"debug", "info", "warning", "error"})
LOG_FORMATS = frozenset({"auto", "json", "console"})


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """Where PostgreSQL and Valkey are; the addresses may carry passwords."""

    database_url: Secret
    redis_url: Secret


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """How a process is seen from outside."""

    process: str
    log_level: str
    log_format: str
    metrics_port: int | None
    otlp_endpoint: str | None


class AuctionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How auctions are held, and what is kept of them."""

    own_bids: str = "ignore"
    sample_rate: float = 1.0
    record_bytes_per_second: int = AUCTION_RECORD_BYTES_PER_SECOND
    frequency_when_away: str = "withhold"
    frequency_without_user: str = "withhold"


class DeliverySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the delivery plane needs to know."""

    services: Services
    telemetry: Telemetry
    host: str
    port: int
    public_url: str
    token_secret: Secret
    older_token_secrets: tuple[Secret, ...]
    token_seconds: int
    geoip_file: str | None
    rate_limit_permits_per_minute: int | None
    trusted_proxies: tuple[Network, ...]
    data_centers: tuple[Network, ...]
    events_per_address_per_minute: int
    serve_cache_seconds: int
    spool_directory: Path
    spool_bytes_max: int
    has_served_events: bool
    has_sample_pages: bool
    auctions: AuctionSettings


class ControlSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the control plane needs to know."""

    services: Services
    telemetry: Telemetry
    host: str
    port: int
    public_url: str
    jwt_secret: Secret
    sealing_secrets: tuple[Secret, ...] = ()
    rate_limit_permits_per_minute: int
    trusted_proxies: tuple[Network, ...]
    auctions: AuctionSettings = AuctionSettings()  # As delivery has them, to explain what it does.
    delivery_url: str = (
        f"http://127.0.0.1:{DELIVERY_PORT}"  # Where readers find it, for what publishers copy.
    )


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the worker needs to know."""

    services: Services
    telemetry: Telemetry
    host: str
    port: int
    schedule_sync_cron: Cron
    ledger_retention_days: int
    event_retention_days: int
    auction_retention_days: int
    topic_entries_max: int
    stats_rollup_cron: Cron
    hold_seconds: int
    learning_wait_seconds: int
    sync_cron: Cron
    sync_lookback_days: int
    sealing_secrets: tuple[Secret, ...] = ()
    meta_url: str | None


def delivery_settings(variables: Mapping[str, str]) -> DeliverySettings:
    """Read the settings of a delivery process."""
    return _checked(variables, _delivery)


def control_settings(variables: Mapping[str, str]) -> ControlSettings:
    """Read the settings of the control process."""
    return _checked(variables, _control)


def worker_settings(variables: Mapping[str, str]) -> WorkerSettings:
    """Read the settings of a worker process."""
    return _checked(variables, _worker)


def telemetry_settings(variables: Mapping[str, str]) -> Telemetry:
    """Read how a process is seen that has no other settings."""
    return _checked(variables, lambda environment: _telemetry(environment, "adloom"))


def with_dotenv(variables: Mapping[str, str], path: Path) -> dict[str, str]:
    """Add what a `.env` file says; what the environment says itself wins."""
    if not path.is_file():
        return dict(variables)
    return {**_dotenv(path.read_text(encoding="utf-8")), **variables}


def _checked(variables: Mapping[str, str], read: Callable[[Environment], T]) -> T:
    environment = Environment(variables)
    settings = read(environment)
    environment.checked()
    return settings


def _delivery(environment: Environment) -> DeliverySettings:
    port = _port(environment, "ADLOOM_DELIVERY_PORT", DELIVERY_PORT)
    return DeliverySettings(
        services=_services(environment),
        telemetry=_telemetry(environment, "delivery"),
        host=environment.text("ADLOOM_DELIVERY_HOST", "127.0.0.1"),
        port=port,
        public_url=_public_url(environment, "ADLOOM_DELIVERY_URL", port),
        token_secret=environment.secret("ADLOOM_TOKEN_SECRET"),
        older_token_secrets=environment.secrets("ADLOOM_OLDER_TOKEN_SECRETS"),
        token_seconds=environment.integer("ADLOOM_TOKEN_SECONDS", TOKEN_SECONDS, least=60, most=86_400),
        geoip_file=environment.optional("ADLOOM_GEOIP_FILE"),
        rate_limit_permits_per_minute=_permits(environment),
        trusted_proxies=environment.networks("ADLOOM_TRUSTED_PROXIES"),
        data_centers=environment.network_file("ADLOOM_DATA_CENTERS_FILE"),
        events_per_address_per_minute=environment.integer(
            "ADLOOM_EVENTS_PER_ADDRESS_PER_MINUTE", EVENTS_PER_ADDRESS_PER_MINUTE, least=0, most=1_000_000_000
        ),
        serve_cache_seconds=environment.integer(
            "BANNER_SERVE_CACHE_TTL_SECONDS", SERVE_CACHE_SECONDS, least=0, most=SERVE_CACHE_SECONDS_MAX
        ),
        spool_directory=environment.path("ADLOOM_SPOOL_DIR", in_data_directory="spool"),
        spool_bytes_max=environment.integer(
            "ADLOOM_SPOOL_BYTES_MAX", SPOOL_BYTES_MAX, least=0, most=SPOOL_BYTES_MAX_MAX
        ),
        has_served_events=environment.choice("ADLOOM_SERVED_EVENTS", "off", among=SWITCH) == "on",
        has_sample_pages=environment.choice("ADLOOM_SAMPLE_PAGES", "off", among=SWITCH) == "on",
        auctions=_auctions(environment),
    )


def _auctions(environment: Environment) -> AuctionSettings:
    return AuctionSettings(
        own_bids=environment.choice("ADLOOM_AUCTION_OWN_BIDS", "ignore", among=OWN_BIDS),
        sample_rate=environment.share("ADLOOM_AUCTION_SAMPLE_RATE", 1.0),
        record_bytes_per_second=environment.integer(
            "ADLOOM_AUCTION_RECORD_BYTES_PER_SECOND", AUCTION_RECORD_BYTES_PER_SECOND, least=1, most=2**40
        ),
        frequency_when_away=environment.choice("ADLOOM_FREQUENCY_WHEN_AWAY", "withhold", among=CAPPED),
        frequency_without_user=environment.choice("ADLOOM_FREQUENCY_WITHOUT_USER", "withhold", among=CAPPED),
    )


def _control(environment: Environment) -> ControlSettings:
    port = _port(environment, "ADLOOM_CONTROL_PORT", CONTROL_PORT)
    return ControlSettings(
        services=_services(environment),
        telemetry=_telemetry(environment, "control"),
        host=environment.text("ADLOOM_CONTROL_HOST", "127.0.0.1"),
        port=port,
        public_url=_public_url(environment, "ADLOOM_CONTROL_URL", port),
        jwt_secret=environment.secret("JWT_SECRET"),
        sealing_secrets=environment.secrets("ADLOOM_SECRET"),
        rate_limit_permits_per_minute=_permits(environment) or LOGIN_PERMITS_PER_MINUTE,
        trusted_proxies=environment.networks("ADLOOM_TRUSTED_PROXIES"),
        auctions=_auctions(environment),
        delivery_url=_public_url(
            environment, "ADLOOM_DELIVERY_URL", _port(environment, "ADLOOM_DELIVERY_PORT", DELIVERY_PORT)
        ),
    )


def _worker(environment: Environment) -> WorkerSettings:
    return WorkerSettings(
        services=_services(environment),
        telemetry=_telemetry(environment, "worker"),
        host=environment.text("ADLOOM_WORKER_HOST", "127.0.0.1"),
        port=_port(environment, "WORKER_PORT", WORKER_PORT),
        schedule_sync_cron=environment.cron("BANNER_SCHEDULE_SYNC_CRON", EVERY_MINUTE),
        ledger_retention_days=environment.integer(
            "ADLOOM_LEDGER_RETENTION_DAYS", LEDGER_RETENTION_DAYS, least=1, most=LEDGER_RETENTION_DAYS_MAX
        ),
        event_retention_days=environment.integer(
            "ADLOOM_EVENT_RETENTION_DAYS",
            EVENT_RETENTION_DAYS,
            least=EVENT_RETENTION_DAYS_MIN,
            most=EVENT_RETENTION_DAYS_MAX,
        ),
        auction_retention_days=environment.integer(
            "ADLOOM_AUCTION_RETENTION_DAYS", AUCTION_RETENTION_DAYS, least=1, most=AUCTION_RETENTION_DAYS_MAX
        ),
        topic_entries_max=environment.integer(
            "ADLOOM_TOPIC_ENTRIES_MAX", TOPIC_ENTRIES_MAX, least=0, most=1_000_000_000
        ),
        stats_rollup_cron=environment.cron("BANNER_STATS_ROLLUP_CRON", EVERY_NIGHT),
        hold_seconds=environment.integer("ADLOOM_HOLD_SECONDS", HOLD_SECONDS, least=1, most=86_400),
        learning_wait_seconds=environment.integer(
            "ADLOOM_LEARNING_WAIT_SECONDS", LEARNING_WAIT_SECONDS, least=1, most=86_400
        ),
        sync_cron=environment.cron("ADLOOM_SYNC_CRON", "*/5 * * * *"),
        sync_lookback_days=environment.integer("ADLOOM_SYNC_LOOKBACK_DAYS", 3, least=0, most=90),
        sealing_secrets=environment.secrets("ADLOOM_SECRET"),
        meta_url=environment.optional("ADLOOM_META_URL"),
    )


def _services(environment: Environment) -> Services:
    return Services(
        database_url=Secret(environment.url("DATABASE_URL", schemes=POSTGRES_SCHEMES)),
        redis_url=Secret(environment.url("REDIS_URL", schemes=VALKEY_SCHEMES)),
    )


def _telemetry(environment: Environment, process: str) -> Telemetry:
    return Telemetry(
        process=environment.text("ADLOOM_PROCESS", process),
        log_level=environment.choice("ADLOOM_LOG_LEVEL", "info", among=LOG_LEVELS),
        log_format=environment.choice("ADLOOM_LOG_FORMAT", "auto", among=LOG_FORMATS),
        metrics_port=environment.optional_integer("ADLOOM_METRICS_PORT", least=0, most=65535) or None,
        otlp_endpoint=environment.optional("OTEL_EXPORTER_OTLP_ENDPOINT"),
    )


def _port(environment: Environment, name: str, default: int) -> int:
    return environment.integer(name, default, least=0, most=65535)


def _public_url(environment: Environment, name: str, port: int) -> str:
    address = environment.url(name, f"http://127.0.0.1:{port}", schemes=frozenset({"http", "https"}))
    return address.rstrip("/")


def _permits(environment: Environment) -> int | None:
    return environment.optional_integer("RATE_LIMIT_PERMITS_PER_MINUTE", least=1, most=1_000_000_000)


def _dotenv(text: str) -> dict[str, str]:
    variables: dict[str, str] = {}
    for line in text.splitlines():
        name, is_pair, value = line.strip().removeprefix("export ").partition("=")
        if is_pair and name and not name.startswith("#"):
            variables[name.strip()] = value.strip().strip("'\"")
    return variables
