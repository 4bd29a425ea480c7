"""The shapes that bodies and answers of the catalog share: prices, budgets, time zones, domains."""

import contextlib
import re
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

from adloom.core.clock import parse_day
from adloom.core.errors import ValidationFailedError
from adloom.core.money import Micros, decimal_from_micros, micros_from_decimal, paisa_from_micros
from adloom.runtime.http.api.shapes import TAKES_WHOLE_FLOATS, Moment, Text
from adloom.schedule.recurrence_rule import TEXT_CHARACTERS_MAX, parse_recurrence
from adloom.schedule.schedule import parse_timezone
from adloom.targeting.values import normalize_domain

PRICE_MAX: Final = 1_000_000_000
PRICE_PLACES_MAX: Final = 4
# In micros this still fits the database's integers, and in JSON a reader's floats.
PAISA_MAX: Final = 10**14
TIMEZONE_LENGTH_MAX: Final = 64
DOMAIN_LENGTH_MAX: Final = 253
DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIME_PATTERN: Final = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?"


def parse_amount(value: object, *, like: str, most: int, places: int) -> Decimal:
    """Parse a number of JSON that is an amount of money."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number like {like}")  # noqa: TRY004 - Pydantic reports only this
    # The shortest text of a float is what its writer wrote: prices have far fewer digits than floats.
    amount = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    if not amount.is_finite() or not 0 <= amount <= most:
        raise ValueError(f"must be between 0 and {most}")
    if amount != round(amount, places):
        raise ValueError(f"must have at most {places} decimal places")
    return amount


def _convert_price(value: object) -> Micros:
    return micros_from_decimal(parse_amount(value, like="2.5", most=PRICE_MAX, places=PRICE_PLACES_MAX))


def _check_positive(price: Micros) -> Micros:
    if not price:
        raise ValueError("must be more than 0; null means that there is none")
    return price


def _write_price(price: Micros) -> float:
    return float(decimal_from_micros(price))


def _check_zone(name: str) -> str:
    try:
        return parse_timezone(name).key
    except ValidationFailedError as error:
        raise ValueError(error.errors[0].message) from None


def _check_rule(text: str) -> str:
    try:
        parse_recurrence(text)
    except ValidationFailedError as error:
        raise ValueError(error.errors[0].message) from None
    return text


def _parse_time_of_day(value: object) -> time:
    if not isinstance(value, str) or not re.fullmatch(TIME_PATTERN, value, re.ASCII):
        raise ValueError("must be a time of day like 09:30 or 09:30:00")
    return time.fromisoformat(value)


def _parse_domain(text: str) -> str:
    domain = normalize_domain(text)
    if domain is None or "." not in domain:
        raise ValueError("must be a domain like example.com, without https://, port or path")
    return domain


def _parse_day(value: object) -> date:
    try:
        return parse_day(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("must be a day like 2026-11-15") from None


def _begin_of_day(value: object) -> object:
    return f"{value}T00:00:00Z" if isinstance(value, str) and DAY.fullmatch(value) else value


def _include_whole_day(value: object) -> object:
    """Return the first moment after a day, so that the whole day is included."""
    if isinstance(value, str) and DAY.fullmatch(value):
        with contextlib.suppress(ValueError, OverflowError):
            value = f"{date.fromisoformat(value) + timedelta(days=1)}"
    return _begin_of_day(value)


# Not Pydantic's own reading, which takes moments and seconds since 1970 too.
Day = Annotated[date, BeforeValidator(_parse_day)]
# UTC days.
MomentOrDay = Annotated[Moment, BeforeValidator(_begin_of_day)]
MomentOrEndOfDay = Annotated[Moment, BeforeValidator(_include_whole_day)]
Price = Annotated[
    Micros,
    BeforeValidator(_convert_price),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": PRICE_MAX}),
]
PositivePrice = Annotated[
    Price,
    AfterValidator(_check_positive),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": PRICE_MAX}),
]
PriceShown = Annotated[Micros, PlainSerializer(_write_price, return_type=float)]
PaisaShown = Annotated[Micros, PlainSerializer(paisa_from_micros, return_type=int)]
AmountShown = Annotated[Decimal, PlainSerializer(float, return_type=float)]
Paisa = Annotated[int, Field(strict=True, ge=0, le=PAISA_MAX), TAKES_WHOLE_FLOATS]
Percent = Annotated[int, Field(strict=True, ge=0, le=100), TAKES_WHOLE_FLOATS]
TimeZone = Annotated[Text, Field(max_length=TIMEZONE_LENGTH_MAX), AfterValidator(_check_zone)]
Domain = Annotated[Text, Field(max_length=DOMAIN_LENGTH_MAX), AfterValidator(_parse_domain)]
RecurrenceRule = Annotated[Text, Field(max_length=TEXT_CHARACTERS_MAX), AfterValidator(_check_rule)]
# Without an offset, which the format `time` of JSON Schema would ask for.
_TIME_SCHEMA = WithJsonSchema({"type": "string", "pattern": f"^{TIME_PATTERN}$", "examples": ["09:30"]})
TimeOfDay = Annotated[time, BeforeValidator(_parse_time_of_day), _TIME_SCHEMA]
TimeOfDayShown = Annotated[time, _TIME_SCHEMA]
