"""The settings of the crawler and the classifier."""

from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec

from adloom.core.setting import Secret, SettingValueError, Variable, parse_one, parse_within
from adloom.runtime.outbound.settings import OutboundSettings
from adloom.runtime.settings import (
    PAGE_FRESH,
    PAGE_FRESH_HOURS,
    Services,
    SettingsError,
    Telemetry,
    read_settings,
)

CRAWLER_PORT: Final = 3002
CLASSIFIER_PORT: Final = 3003
EMBEDDED: Final = "embedded"


def parse_service_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise SettingValueError("an address that begins with http:// or https://")
    return text.rstrip("/")


class CrawlerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a crawler process."""

    services: Services
    telemetry: Telemetry
    host: Annotated[str, Variable("ADLOOM_CRAWLER_HOST")] = "127.0.0.1"
    port: Annotated[int, Variable("ADLOOM_CRAWLER_PORT", parse_within(0, 65535))] = CRAWLER_PORT
    sites_at_once: Annotated[int, Variable("ADLOOM_CRAWL_SITES_AT_ONCE", parse_within(1, 64))] = 4
    delay_milliseconds: Annotated[
        int, Variable("ADLOOM_CRAWL_DELAY_MILLISECONDS", parse_within(0, 60_000))
    ] = 1_000
    outbound: OutboundSettings = OutboundSettings()
    page_fresh_hours: Annotated[int, PAGE_FRESH] = PAGE_FRESH_HOURS


class LanguageModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What classifies pages: the package itself, or the language model of a provider."""

    provider: Annotated[
        str, Variable("ADLOOM_CLASSIFIER", parse_one(EMBEDDED, "anthropic", "openai", "gemini"))
    ] = EMBEDDED
    key: Annotated[Secret | None, Variable("ADLOOM_CLASSIFIER_KEY", Secret)] = None
    model: Annotated[str | None, Variable("ADLOOM_CLASSIFIER_MODEL")] = None
    url: Annotated[str | None, Variable("ADLOOM_CLASSIFIER_URL", parse_service_url)] = None
    requests_per_minute: Annotated[
        int, Variable("ADLOOM_CLASSIFIER_REQUESTS_PER_MINUTE", parse_within(1, 10_000))
    ] = 8


class ClassifierSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a classifier process."""

    services: Services
    telemetry: Telemetry
    host: Annotated[str, Variable("ADLOOM_CLASSIFIER_HOST")] = "127.0.0.1"
    port: Annotated[int, Variable("ADLOOM_CLASSIFIER_PORT", parse_within(0, 65535))] = CLASSIFIER_PORT
    language_model: LanguageModelSettings = LanguageModelSettings()
    page_fresh_hours: Annotated[int, PAGE_FRESH] = PAGE_FRESH_HOURS


def read_crawler_settings(variables: Mapping[str, str]) -> CrawlerSettings:
    return read_settings(CrawlerSettings, variables, process="crawler")


def read_classifier_settings(variables: Mapping[str, str]) -> ClassifierSettings:
    settings = read_settings(ClassifierSettings, variables, process="classifier")
    model = settings.language_model
    if model.provider != EMBEDDED and not model.key:
        raise SettingsError(
            f"ADLOOM_CLASSIFIER is {model.provider!r} and ADLOOM_CLASSIFIER_KEY is not set: set it to your API key,"
            f" or ADLOOM_CLASSIFIER to {EMBEDDED!r}."
        )
    return settings
