"""Checks of form fields, in the words of the API: they show an error before the API has to."""

import re
from collections.abc import Callable
from datetime import datetime, time
from typing import Any, Final
from urllib.parse import urlsplit

from adloom.catalog.banner.model import COLOR_PATTERN
from adloom.catalog.placement.model import SLUG_PATTERN
from adloom.core.errors import ValidationFailedError
from adloom.schedule.recurrence_rule import parse_recurrence
from adloom.targeting.values import normalize_domain

MUST_BE_DOMAIN: Final = "must be a domain like example.com, without https://, port or path"

INTEGER_MAX: Final = 2**31 - 1
PRICE_PLACES_MAX: Final = 4
NAME_LENGTH_MAX: Final = 255

Check = Callable[[Any], str | None]


def web_address(value: str) -> str | None:
    try:
        parts = urlsplit(value.strip())
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_web = False
    return (
        None
        if is_web and " " not in value.strip()
        else "must be an address that begins with http:// or https:// and names a host"
    )


def slug(value: str) -> str | None:
    return (
        None
        if re.fullmatch(SLUG_PATTERN, value)
        else "must be small letters and digits, in words joined by single hyphens: home-hero"
    )


def colour(value: str) -> str | None:
    return None if re.fullmatch(COLOR_PATTERN, value) else "must be a colour like #ff8800"


def domain(value: str) -> str | None:
    name = normalize_domain(value)
    return None if name is not None and "." in name else MUST_BE_DOMAIN


def domains(values: list[str]) -> str | None:
    return next((f"{value}: {MUST_BE_DOMAIN}" for value in values if domain(value)), None)


def natural(value: float) -> str | None:
    return None if value == int(value) and 0 <= value <= INTEGER_MAX else "must be a whole number, 0 or more"


def positive(value: float) -> str | None:
    return None if value == int(value) and 1 <= value <= INTEGER_MAX else "must be a whole number, 1 or more"


def price(value: float) -> str | None:
    return (
        None
        if value >= 0 and value == round(value, PRICE_PLACES_MAX)
        else "must be a number, 0 or more, with at most 4 decimal places"
    )


def money(value: float) -> str | None:
    return None if value >= 0 else "must be 0 or more"


def moment(value: str) -> str | None:
    """Check the value of a datetime-local field."""
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return "must be a day and a time"
    return None


def time_of_day(value: str) -> str | None:
    try:
        time.fromisoformat(value)
    except ValueError:
        return "must be a time of day like 09:30"
    return None


def recurrence(value: str) -> str | None:
    try:
        parse_recurrence(value)
    except ValidationFailedError as error:
        return error.errors[0].message
    return None


def name(value: str) -> str | None:
    return "must not be blank" if not value.strip() else at_most(NAME_LENGTH_MAX)(value)


def at_most(length: int) -> Check:
    return lambda value: None if len(value) <= length else f"must have at most {length} characters"
