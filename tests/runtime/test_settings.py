"""Settings: an error names every wrong variable, its value and what was expected, and shows no secret."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from adloom.app.delivery_traffic import build_offer_bounds, lift_limits
from adloom.cli.dotenv_file import with_dotenv
from adloom.pages.model import FRESH_HOURS
from adloom.runtime.background_settings import read_classifier_settings, read_crawler_settings
from adloom.runtime.settings import (
    SettingsError,
    add_redis_password,
    read_control_settings,
    read_delivery_settings,
    read_worker_settings,
)
from adloom.sync.jobs import CONCURRENCY
from tests.support.for_each import for_each

GOOD = {
    "DATABASE_URL": "postgresql://adloom:hunter2@db.internal/adloom",
    "REDIS_URL": "redis://:hunter2@cache.internal:6379/0",
    "JWT_SECRET": "j" * 40,
    "ADLOOM_TOKEN_SECRET": "t" * 40,
}


def test_the_defaults_are_those_of_the_contract() -> None:
    delivery, control, worker = (
        read_delivery_settings(GOOD),
        read_control_settings(GOOD),
        read_worker_settings(GOOD),
    )

    assert (delivery.port, control.port, worker.port) == (8080, 8090, 3001)
    assert delivery.host == control.host == worker.host == "127.0.0.1"
    assert delivery.public_url == "http://127.0.0.1:8080"
    assert (delivery.rate_limit_permits_per_minute, delivery.holds_per_address) == (12_000, 300)
    assert (delivery.events_per_address_per_minute, delivery.data_centers) == (600, ())
    assert control.rate_limit_permits_per_minute == 60
    assert (delivery.traffic.events_per_hour, delivery.traffic.clicks_per_hour) == (
        3_000,
        60,
    )
    assert (delivery.traffic.impression_ms_min, delivery.traffic.click_ms_min) == (100, 500)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("::1", "http://[::1]:8080"),
        ("192.168.7.5", "http://192.168.7.5:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),  # noqa: S104 - nothing is bound here
        ("::", "http://[::1]:8080"),
    ],
)
def test_without_an_address_for_visitors_it_is_the_one_that_is_listened_on(host: str, url: str) -> None:
    variables = {**GOOD, "ADLOOM_DELIVERY_HOST": host, "ADLOOM_CONTROL_HOST": host}

    assert read_delivery_settings(variables).public_url == url
    assert read_control_settings(variables).public_url == url.replace("8080", "8090")
    assert read_control_settings(variables).delivery_url == url


def test_without_traffic_limits_no_bound_goes_by_address() -> None:
    on, off = (
        lift_limits(read_delivery_settings({**GOOD, "ADLOOM_TRAFFIC_LIMITS": value}))
        for value in ("on", "off")
    )

    assert on == read_delivery_settings(GOOD)
    assert (off.rate_limit_permits_per_minute, off.holds_per_address, off.events_per_address_per_minute) == (
        0,
        0,
        0,
    )
    bounds = build_offer_bounds(off.traffic)
    assert (bounds.impressions.bound, bounds.clicks.bound) == (0, 0)
    assert (bounds.impression_after, bounds.click_after) == (timedelta(), timedelta())


@for_each(
    ("name", "value", "expected"),
    [
        (
            "ADLOOM_DELIVERY_PORT",
            "http",
            "ADLOOM_DELIVERY_PORT is 'http': expected a whole number from 0 to 65535.",
        ),
        (
            "ADLOOM_DELIVERY_PORT",
            "70000",
            "ADLOOM_DELIVERY_PORT is '70000': expected a whole number from 0 to 65535.",
        ),
        (
            "ADLOOM_LOG_LEVEL",
            "loud",
            "ADLOOM_LOG_LEVEL is 'loud': expected one of debug, error, info, warning.",
        ),
        (
            "ADLOOM_TOKEN_SECRET",
            "short",
            "ADLOOM_TOKEN_SECRET is too short: it needs at least 32 characters.",
        ),
        (
            "ADLOOM_TRUSTED_PROXIES",
            "10.0.0.0/8, proxy",
            "ADLOOM_TRUSTED_PROXIES is 'proxy': expected addresses or networks like 10.0.0.0/8, separated by commas.",
        ),
        (
            "ADLOOM_EVENTS_PER_ADDRESS_PER_MINUTE",
            "-1",
            "ADLOOM_EVENTS_PER_ADDRESS_PER_MINUTE is '-1': expected a whole number from 0 to 1000000000.",
        ),
        ("DATABASE_URL", "", "DATABASE_URL is not set."),
        ("DATABASE_URL", "mysql://x/y", "DATABASE_URL must be an address like postgres://host/…."),
        ("DATABASE_URL", "postgresql:///db", "DATABASE_URL must be an address like postgres://host/…."),
        ("DATABASE_URL", "postgresql://h:port/x", "DATABASE_URL must be an address like postgres://host/…."),
        (
            "DATABASE_URL",
            "postgresql://a:b@h:1,i:x/y",
            "DATABASE_URL must be an address like postgres://host/….",
        ),
        ("REDIS_URL", "redis://h:70000", "REDIS_URL must be an address like redis://host/…."),
        ("REDIS_URL", "unix:", "REDIS_URL must be an address like redis://host/…."),
        ("REDIS_URL", "redis://[", "REDIS_URL must be an address like redis://host/…."),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "collector:4318",
            "OTEL_EXPORTER_OTLP_ENDPOINT must be an address like http://host/….",
        ),
        (
            "RATE_LIMIT_PERMITS_PER_MINUTE",
            "0",
            "RATE_LIMIT_PERMITS_PER_MINUTE is '0': expected a whole number from 1",
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_was_expected(name: str, value: str, expected: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_delivery_settings({**GOOD, name: value})

    assert str(raised.value).startswith(expected)


def test_servers_may_be_named_by_their_sockets() -> None:
    sockets = {
        "DATABASE_URL": "postgresql:///ads?host=/run/postgresql",
        "REDIS_URL": "unix:///run/valkey.sock",
    }

    services = read_delivery_settings({**GOOD, **sockets, "REDIS_PASSWORD": "p"}).services

    assert services.database_url == sockets["DATABASE_URL"]
    assert services.redis_url == "unix://:p@/run/valkey.sock"


def test_all_wrong_settings_are_reported_together() -> None:
    with pytest.raises(SettingsError) as raised:
        read_control_settings({"ADLOOM_CONTROL_PORT": "x"})

    named = {line.split(" ")[0] for line in str(raised.value).splitlines()}
    assert named == {"DATABASE_URL", "REDIS_URL", "JWT_SECRET", "ADLOOM_CONTROL_PORT"}


def test_printed_settings_contain_no_secret() -> None:
    given = {**GOOD, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://ada:hunter2@collector:4318"}
    printed = repr(read_control_settings(given)) + repr(read_delivery_settings(given))

    assert "hunter2" not in printed
    assert "jjjj" not in printed
    assert "tttt" not in printed


def test_a_secret_that_is_too_short_is_not_repeated() -> None:
    with pytest.raises(SettingsError) as raised:
        read_control_settings({**GOOD, "JWT_SECRET": "hunter2"})

    assert "hunter2" not in str(raised.value)


def test_older_secrets_are_read_and_not_shown() -> None:
    settings = read_delivery_settings({**GOOD, "ADLOOM_OLDER_TOKEN_SECRETS": f"{'o' * 40}, {'p' * 40}"})

    assert settings.older_token_secrets == ("o" * 40, "p" * 40)
    assert "oooo" not in repr(settings)
    with pytest.raises(SettingsError, match="ADLOOM_OLDER_TOKEN_SECRETS needs at least 32"):
        read_delivery_settings({**GOOD, "ADLOOM_OLDER_TOKEN_SECRETS": "hunter2"})


def test_a_dotenv_file_supplies_variables_missing_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# a comment\nexport A=one\nB='two words'\nC=file\n\nnonsense\n", encoding="utf-8")

    variables = with_dotenv({"C": "environment"}, path)

    assert variables == {"A": "one", "B": "two words", "C": "environment"}


def test_only_the_environment_counts_without_a_dotenv_file(tmp_path: Path) -> None:
    assert with_dotenv({"A": "1"}, tmp_path / ".env") == {"A": "1"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"A=1\nB C=2\n", r"\.env, line 2: expected NAME=value\."),
        (b'A="begun\n', r"\.env, line 1: expected"),
        (b"A=\xe9\n", r"\.env is no text in UTF-8\."),
    ],
)
def test_a_dotenv_file_that_cannot_be_read_is_named_with_the_line(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = tmp_path / ".env"
    path.write_bytes(content)

    with pytest.raises(SettingsError, match=expected):
        with_dotenv({}, path)


@pytest.mark.parametrize("text", ["A=1\r\n", "\ufeffA=1\n", 'export A="1" # one\n', "B\nA=1\n"])
def test_a_dotenv_file_is_written_as_editors_write_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".env"
    path.write_text(text, encoding="utf-8", newline="")

    assert with_dotenv({}, path) == {"A": "1"}


def test_a_dotenv_file_of_another_user_is_not_read(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    path = tmp_path / ".env"
    path.write_text("A=1\n", encoding="utf-8")
    os.chown(path, 65534, 65534)

    assert with_dotenv({}, path) == {}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://cache:6379/0", "redis://:p%40ss@cache:6379/0"),
        ("redis://me@cache/0", "redis://me:p%40ss@cache/0"),
        ("redis://:other@cache/0", "redis://:other@cache/0"),
    ],
)
def test_a_password_of_redis_goes_into_an_address_without_one(url: str, expected: str) -> None:
    variables = {**GOOD, "REDIS_URL": url, "REDIS_PASSWORD": "p@ss"}

    assert read_worker_settings(variables).services.redis_url == expected
    assert add_redis_password({"REDIS_PASSWORD": "p"}) == {"REDIS_PASSWORD": "p"}


def test_a_variable_that_is_not_read_is_refused_with_what_to_do() -> None:
    with pytest.raises(SettingsError, match=r"SEQ_URL is not read: .*seqcli"):
        read_delivery_settings({**GOOD, "SEQ_URL": "http://seq:5341"})


def test_the_defaults_of_the_sync_and_of_the_cache_are_those_of_the_specification() -> None:
    worker = read_worker_settings(GOOD)

    assert (str(worker.sync_cron), worker.sync_lookback_days, CONCURRENCY) == ("*/5 * * * *", 3, 5)
    assert read_delivery_settings(GOOD).serve_cache_seconds == 60
    changed = {**GOOD, "ADLOOM_SYNC_CRON": "0 * * * *", "ADLOOM_SYNC_LOOKBACK_DAYS": "0"}
    assert (
        str(read_worker_settings(changed).sync_cron),
        read_worker_settings(changed).sync_lookback_days,
    ) == (
        "0 * * * *",
        0,
    )
    assert read_delivery_settings({**GOOD, "BANNER_SERVE_CACHE_TTL_SECONDS": "0"}).serve_cache_seconds == 0
    with pytest.raises(SettingsError, match="BANNER_SERVE_CACHE_TTL_SECONDS is '-1'"):
        read_delivery_settings({**GOOD, "BANNER_SERVE_CACHE_TTL_SECONDS": "-1"})
    with pytest.raises(SettingsError, match="ADLOOM_SYNC_LOOKBACK_DAYS is '91'"):
        read_worker_settings({**GOOD, "ADLOOM_SYNC_LOOKBACK_DAYS": "91"})


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])
def test_a_language_model_without_its_key_is_refused_at_the_start(provider: str) -> None:
    with pytest.raises(SettingsError, match=r"ADLOOM_CLASSIFIER_KEY is not set: set it to your API key"):
        read_classifier_settings({**GOOD, "ADLOOM_CLASSIFIER": provider})

    assert read_classifier_settings({**GOOD, "ADLOOM_CLASSIFIER": provider, "ADLOOM_CLASSIFIER_KEY": "k"})


def test_pages_are_fresh_for_as_long_as_one_setting_says() -> None:
    given = {**GOOD, "ADLOOM_PAGE_FRESH_HOURS": "5"}
    readers = (read_control_settings, read_crawler_settings, read_classifier_settings)

    assert {read(GOOD).page_fresh_hours for read in readers} == {FRESH_HOURS}
    assert {read(given).page_fresh_hours for read in readers} == {5}
