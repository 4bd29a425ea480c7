"""Parses requests for an auction: the user, the placement, and what is known of the visitor."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from adloom.auction.score import Signals
from adloom.core.errors import FieldProblem, ValidationFailedError, make_field_error
from adloom.core.ids import NO_USER
from adloom.events.log.event import CONTEXT_VALUE_MAX
from adloom.runtime.http.body import BACKSLASH, BodyDecoder
from adloom.serving.request.overrides import (
    BOOLEANS,
    PARAMETERS,
    Overrides,
    OverrideValue,
    Parameter,
    parse_overrides,
)
from adloom.targeting.context import Context

DEFAULT_TYPE: Final = "feed"
NO_USER_TEXT: Final = str(NO_USER)
CONTEXT_KEYS_MAX: Final = 64
CONTEXTS_CACHED_MAX: Final = 4_096
CONTEXT_BYTES_CACHED_MAX: Final = 512
LAST_PURCHASE_DAYS: Final = "lastPurchaseDays"
DAYS_DIGITS_MAX: Final = 6

_WITHIN: Final = "userContext."
_LOGIN_STATES: Final = BOOLEANS | {"logged_in": True, "logged_out": False}


UserContext = Annotated[dict[str, Any], Meta(max_length=CONTEXT_KEYS_MAX)]


class ServeRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Asks for an ad for a user: on any placement of a type, or on a named one."""

    user_id: UUID
    placement_type: Annotated[str, Meta(min_length=1, max_length=50)] | None = None
    placement: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    user_context: UserContext | None = None


class VisitorInfo(msgspec.Struct, frozen=True, eq=False):
    """What a request says of its visitor; equal requests share one object."""

    overrides: Overrides
    last_purchase_days: int | None = None

    def build_signals(self, placement_type: str, context: Context) -> Signals:
        return Signals(
            placement_type=placement_type,
            segment=context.segment,
            last_purchase_days=self.last_purchase_days,
            device=context.device,
            country=context.country,
            hour=context.hour,
        )


class ServeQuery(msgspec.Struct, frozen=True, gc=False):
    """A parsed request; its user as a canonical UUID text."""

    user: str
    placement_type: str | None
    placement: str | None
    visitor: VisitorInfo


class _CommonRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The same request as most clients write it: a canonical id, and a context that is cached as bytes."""

    user_id: str
    placement_type: Annotated[str, Meta(min_length=1, max_length=50)] | None = None
    placement: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    user_context: msgspec.Raw = msgspec.Raw()


def parse_request(body: bytes) -> ServeQuery:
    """Parse a request; ValidationFailedError names what is wrong with it."""
    try:
        common = _decode_common(body)
        context = bytes(common.user_context)
        is_short = len(context) <= CONTEXT_BYTES_CACHED_MAX
        # A backslash may precede an escaped NUL, which is refused.
        if is_short and _is_written(common.user_id) and BACKSLASH not in body:
            visitor = _parse_cached_visitor(context) if context else UNKNOWN_VISITOR
            return ServeQuery(common.user_id, common.placement_type, common.placement, visitor)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # The full decoder finds out what is wrong.
    whole = _decode(body)
    return ServeQuery(
        str(whole.user_id), whole.placement_type, whole.placement, parse_visitor(whole.user_context)
    )


def parse_visitor(user_context: Mapping[str, Any] | None) -> VisitorInfo:
    """Parse the user context; unknown names are ignored, all values are texts."""
    if not user_context:
        return UNKNOWN_VISITOR
    for value in user_context.values():
        if not isinstance(value, str):
            raise _make_type_error(user_context)
    return _parse_values(tuple([user_context.get(name) for name in _NAMES]))


def share_visitor(overrides: Overrides) -> VisitorInfo:
    """Return the object that requests with the same overrides share."""
    return _share_visitor(tuple(overrides.fields.items())) if overrides.fields else UNKNOWN_VISITOR


@lru_cache(CONTEXTS_CACHED_MAX)
def _share_visitor(fields: tuple[tuple[str, OverrideValue], ...]) -> VisitorInfo:
    return VisitorInfo(Overrides(dict(fields)))


@lru_cache(CONTEXTS_CACHED_MAX)
def _parse_cached_visitor(context: bytes) -> VisitorInfo:
    return parse_visitor(_decode_context(context))


@lru_cache(CONTEXTS_CACHED_MAX)
def _parse_values(values: tuple[str | None, ...]) -> VisitorInfo:
    """Parse the values of all names; errors are not cached, so cached values are short."""
    given = {name: value for name, value in zip(_NAMES, values, strict=True) if value is not None}
    days = given.pop(LAST_PURCHASE_DAYS, "")
    overrides = parse_overrides(given, within=_WITHIN, parameters=_PARAMETERS)
    return VisitorInfo(overrides, _parse_days(days) if days else None)


def describe_context(context: Context) -> dict[str, str]:
    """Return what is known of a visitor by the names of the API."""
    known = {
        "device": context.device,
        "country": context.country,
        "language": context.language,
        "loginState": "true" if context.is_logged_in else "false",
        "newVisitor": "true" if context.is_new_visitor else "false",
        "referrerDomain": context.referrer_domain,
        "segment": context.segment,
    }
    return {name: value for name, value in known.items() if value is not None}


@lru_cache(CONTEXTS_CACHED_MAX)
def describe_request(context: Context, last_purchase_days: int | None) -> dict[str, str]:
    """Return what was known of the request, by the names of the API; callers must not change it."""
    known = describe_context(context) | {"hour": str(context.hour), "day": str(context.day)}
    if last_purchase_days is not None:
        known[LAST_PURCHASE_DAYS] = str(last_purchase_days)
    return {name: value[:CONTEXT_VALUE_MAX] for name, value in known.items()}


def _parse_days(days: str) -> int:
    if days.isascii() and days.isdecimal() and len(days) <= DAYS_DIGITS_MAX:
        return int(days)
    raise make_field_error(_WITHIN + LAST_PURCHASE_DAYS, "must be a whole number of days, such as 7")


def _make_type_error(user_context: Mapping[str, Any]) -> ValidationFailedError:
    wrong = [name for name, value in user_context.items() if not isinstance(value, str)]
    problems = [FieldProblem(_WITHIN + name[:100], "must be a text") for name in wrong]
    return ValidationFailedError("All values of userContext must be texts.", errors=problems)


def _parse_login_state(value: object) -> bool | None:
    if value == "":
        return False
    found = _LOGIN_STATES.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(value)
    return found


_PARAMETERS: Final = {
    "device": PARAMETERS["device"],
    "country": PARAMETERS["country"],
    "language": PARAMETERS["language"],
    "loginState": Parameter("is_logged_in", _parse_login_state, "true or false"),
    "newVisitor": PARAMETERS["newVisitor"],
    "referrerDomain": PARAMETERS["referrer"],
    "segment": PARAMETERS["segment"],
}
_NAMES: Final = (*_PARAMETERS, LAST_PURCHASE_DAYS)
_decode: Final = BodyDecoder(ServeRequest).decode
_decode_common: Final = msgspec.json.Decoder(_CommonRequest).decode
_decode_context: Final = msgspec.json.Decoder(UserContext | None).decode
_is_written: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
UNKNOWN_VISITOR: Final = VisitorInfo(Overrides({}))
