"""Whether a report of a conversion is accepted, and as which event.

Only the token of an offer names a campaign, and only we can sign one. So nobody can report a conversion of a campaign
whose ad they were not shown. A report of the advertiser's server says so with a key, and comes before all others of its
name. What counts in the end is decided with the offer's click (`conversions/attribute.py`).
"""

# pure

import hashlib
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from adloom.core.errors import FieldProblem, ValidationFailedError
from adloom.core.money import Micros, micros_from_decimal
from adloom.events.ingest.accept import CorrelationId
from adloom.events.ingest.token import OfferToken
from adloom.events.log.event import Conversion, Moment, resolve_occurred_at

VALUE_MAX: Final = 1_000_000_000  # In units of a currency; some have small units.
PLACES_MAX: Final = 4
DIGITS_MAX: Final = 28  # Of a decimal that is computed exactly.
NAME_BYTES: Final = 16
_EXPECTED: Final = f"Expected a number from 0 to {VALUE_MAX:,} with at most {PLACES_MAX} decimal places."


class ConversionRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A shop reports a conversion; the token is what the click gave its landing page as `adloom_click`."""

    correlation_id: CorrelationId
    tracking_token: str
    value: (
        Annotated[
            Decimal,
            Meta(extra_json_schema={"type": "number", "format": "", "minimum": 0, "maximum": VALUE_MAX}),
        ]
        | None
    ) = None
    currency: Annotated[str, Meta(pattern="^[A-Za-z]{3}$", max_length=3)] | None = None
    occurred_at: Moment | None = None


def build_conversion(
    report: ConversionRequest, offer: OfferToken, *, now: datetime, by_key: bool = False
) -> Conversion:
    """Build the event of a report whose token is ours; ValidationFailedError for a value out of bounds."""
    occurred_at, marks = resolve_occurred_at(report.occurred_at, now=now, offered_at=offer.issued_at)
    return Conversion(
        name=hash_name(report.correlation_id),
        banner_id=offer.banner_id,
        placement_id=offer.placement_id,
        campaign_id=offer.campaign_id,
        request_id=offer.request_id,
        slot=offer.slot,
        offered_at=offer.second,
        occurred_at=occurred_at,
        received_at=now,
        value=_check_value(report.value),
        currency=None if report.currency is None else report.currency.upper(),
        by_key=by_key,
        marks=marks,
    )


def hash_name(correlation_id: str) -> bytes:
    return hashlib.blake2b(
        correlation_id.encode("utf-8", "surrogatepass"), digest_size=NAME_BYTES, person=b"adloom-conv"
    ).digest()


def _check_value(value: Decimal | None) -> Micros:
    if value is None:
        return Micros(0)
    sign, digits, exponent = value.as_tuple()
    is_plain = isinstance(exponent, int) and len(digits) <= DIGITS_MAX
    if not is_plain or (sign and value) or value > VALUE_MAX or value % Decimal("0.0001"):
        raise ValidationFailedError(
            "The body has fields that are missing or wrong: value.", errors=[FieldProblem("value", _EXPECTED)]
        )
    return micros_from_decimal(abs(value))
