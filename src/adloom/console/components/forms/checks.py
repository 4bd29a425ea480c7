"""Checks of form fields, in the words of the API: they show an error before the API has to; and slugs that are suggested."""

import re
import unicodedata
from collections.abc import Callable
from datetime import datetime, time
from typing import Any, Final
from urllib.parse import urlsplit

from adloom.catalog.banner import COLOR_PATTERN
from adloom.catalog.placement import SLUG_PATTERN
from adloom.core.errors import ValidationFailedError
from adloom.core.public_paths import find_blocked_word
from adloom.identity.model import PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN
from adloom.schedule.recurrence_rule import parse_recurrence
from adloom.targeting.values import normalize_domain

MUST_BE_DOMAIN: Final = "must be a domain like example.com, without https://, port or path"

INTEGER_MAX: Final = 2**31 - 1
NAME_LENGTH_MAX: Final = 255

Check = Callable[[Any], str | None]


def _require(is_valid: bool, message: str) -> str | None:  # noqa: FBT001 - the claim that is checked
    return None if is_valid else message


def check_web_address(value: str) -> str | None:
    try:
        parts = urlsplit(value.strip())
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname) and " " not in value.strip()
    except ValueError:
        is_web = False
    return _require(is_web, "must be an address that begins with http:// or https:// and names a host")


def warn_of_blockers(slug: str | None) -> str:
    """Say which word of a slug makes ad blockers hide its ads; empty if there is none."""
    word = find_blocked_word(slug or "")
    return f"Ad blockers look for {word!r} in addresses: another word is shown more often." if word else ""


def check_slug(value: str) -> str | None:
    is_slug = re.fullmatch(SLUG_PATTERN, value) is not None
    return _require(is_slug, "must be small letters and digits, in words joined by single hyphens: home-hero")


def check_password(value: str) -> str | None:
    is_long_enough = PASSWORD_LENGTH_MIN <= len(value) <= PASSWORD_LENGTH_MAX
    return _require(is_long_enough, f"must have at least {PASSWORD_LENGTH_MIN} characters")


def check_same(other: Callable[[], str | None]) -> Check:
    """Check that a field repeats another one, which is read when it is checked."""
    return lambda value: _require(value == other(), "is not the same as above")


def check_colour(value: str) -> str | None:
    return _require(re.fullmatch(COLOR_PATTERN, value) is not None, "must be a colour like #ff8800 or #f80")


def check_domain(value: str) -> str | None:
    name = normalize_domain(value)
    return _require(name is not None and "." in name, MUST_BE_DOMAIN)


def check_domains(values: list[str]) -> str | None:
    return next((f"{value}: {MUST_BE_DOMAIN}" for value in values if check_domain(value)), None)


def check_natural(value: float | str, *, least: int = 0) -> str | None:
    """Check a whole number; what could not be read as one is text."""
    if isinstance(value, str):
        return f"must be a whole number, {least} or more"
    if value > INTEGER_MAX:
        return f"must be at most {INTEGER_MAX:,}"
    return _require(value == int(value) and value >= least, f"must be a whole number, {least} or more")


def check_positive(value: float | str) -> str | None:
    return check_natural(value, least=1)


def check_moment(value: str) -> str | None:
    """Check the value of a datetime-local field."""
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return "must be a day and a time"
    return None


def check_time_of_day(value: str) -> str | None:
    try:
        time.fromisoformat(value)
    except ValueError:
        return "must be a time of day like 09:30"
    return None


def check_recurrence(value: str) -> str | None:
    try:
        parse_recurrence(value)
    except ValidationFailedError as error:
        return error.errors[0].message
    return None


def check_name(value: str) -> str | None:
    return "must not be blank" if not value.strip() else check_at_most(NAME_LENGTH_MAX)(value)


def check_at_most(length: int) -> Check:
    return lambda value: None if len(value) <= length else f"must have at most {length} characters"


SLUG_LENGTH_MAX: Final = 60  # Shorter than the API allows: it is typed and read.


def make_slug(label: str) -> str:
    """Make a slug of a label; a label without Latin letters or digits becomes `place`."""
    plain = unicodedata.normalize("NFKD", label.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:SLUG_LENGTH_MAX].strip("-") or "place"


def suggest_slug(label: str, current: str, suggested: str) -> str:
    """Return the slug for a label while nobody has typed another one, else the one that was typed."""
    if current and current != suggested:
        return current
    return make_slug(label) if label.strip() else ""
