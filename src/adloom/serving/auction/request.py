"""What a request for an auction says: for whom, where, and what is known of the reader."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from adloom.auction.score import Signals
from adloom.core.errors import FieldProblem, ValidationFailedError
from adloom.core.ids import NO_USER
from adloom.runtime.http.body import BodyDecoder
from adloom.serving.request.overrides import BOOLEANS, PARAMETERS, Overrides, Parameter, parse_overrides
from adloom.targeting.context import Context

DEFAULT_TYPE: Final = "feed"
NO_USER_TEXT: Final = str(NO_USER)
CONTEXT_KEYS_MAX: Final = 64
CONTEXTS_REMEMBERED_MAX: Final = 4_096
CONTEXT_BYTES_REMEMBERED_MAX: Final = 512
LAST_PURCHASE_DAYS: Final = "lastPurchaseDays"
DAYS_DIGITS_MAX: Final = 6
BACKSLASH: Final = (
    b"\\"  # Behind which may be a NUL, which is refused; to look for that takes seven times as long.
)

_WITHIN: Final = "userContext."
_LOGIN_STATES: Final = BOOLEANS | {"logged_in": True, "logged_out": False}


UserContext = Annotated[dict[str, Any], Meta(max_length=CONTEXT_KEYS_MAX)]


class ServeRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Somebody wants an ad for a user: on any placement of a type, or on one that is named."""

    user_id: UUID
    placement_type: Annotated[str, Meta(min_length=1, max_length=50)] | None = None
    placement: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    user_context: UserContext | None = None


class VisitorInfo(msgspec.Struct, frozen=True, eq=False):
    """What a request says of its reader in so many words; readers of whom the same is said share it."""

    overrides: Overrides
    last_purchase_days: int | None = None

    def signals(self, placement_type: str, context: Context) -> Signals:
        """Tell what is known of the request to whoever predicts clicks."""
        return Signals(
            placement_type=placement_type,
            segment=context.segment,
            last_purchase_days=self.last_purchase_days,
            device=context.device,
            country=context.country,
            hour=context.hour,
        )


class AuctionQuery(msgspec.Struct, frozen=True, gc=False):
    """A request that was understood; its user as ids are written."""

    user: str
    placement_type: str | None
    placement: str | None
    visitor: VisitorInfo


class _Bare(msgspec.Struct, frozen=True, rename="camel"):
    """The same request as most are: an id as ids are written, and a context that was read before."""

    user_id: str
    placement_type: Annotated[str, Meta(min_length=1, max_length=50)] | None = None
    placement: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    user_context: msgspec.Raw = msgspec.Raw()


def parse_request(body: bytes) -> AuctionQuery:
    """Read a request, or raise what is wrong with it."""
    try:
        bare = _decode_bare(body)
        context = bytes(bare.user_context)
        is_short = len(context) <= CONTEXT_BYTES_REMEMBERED_MAX
        if is_short and _is_written(bare.user_id) and BACKSLASH not in body:
            reader = _remembered_reader_of(context) if context else UNKNOWN_VISITOR
            return AuctionQuery(bare.user_id, bare.placement_type, bare.placement, reader)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # What is wrong with it is found out field by field.
    whole = _decode(body)
    return AuctionQuery(
        str(whole.user_id), whole.placement_type, whole.placement, parse_visitor(whole.user_context)
    )


def parse_visitor(user_context: Mapping[str, Any] | None) -> VisitorInfo:
    """Read what is known of the reader; names that nobody knows are ignored, all values are texts."""
    if not user_context:
        return UNKNOWN_VISITOR
    for value in user_context.values():
        if not isinstance(value, str):
            raise _wrong_kind(user_context)
    return _read(tuple([user_context.get(name) for name in _NAMES]))


@lru_cache(CONTEXTS_REMEMBERED_MAX)
def _remembered_reader_of(context: bytes) -> VisitorInfo:
    return parse_visitor(_decode_context(context))


@lru_cache(CONTEXTS_REMEMBERED_MAX)
def _read(values: tuple[str | None, ...]) -> VisitorInfo:
    """Read the values of all names; what was refused is not remembered, so what is remembered is short."""
    given = {name: value for name, value in zip(_NAMES, values, strict=True) if value is not None}
    days = given.pop(LAST_PURCHASE_DAYS, "")
    overrides = parse_overrides(given, within=_WITHIN, parameters=_PARAMETERS)
    return VisitorInfo(overrides, _days_of(days) if days else None)


def describe_context(context: Context) -> dict[str, str]:
    """Write what is known of a reader by the names of the API; what is not known is left out."""
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


def _days_of(days: str) -> int:
    if days.isascii() and days.isdecimal() and len(days) <= DAYS_DIGITS_MAX:
        return int(days)
    problem = FieldProblem(_WITHIN + LAST_PURCHASE_DAYS, "must be a whole number of days, such as 7")
    raise ValidationFailedError(f"{problem.field} {problem.message}.", errors=[problem])


def _wrong_kind(user_context: Mapping[str, Any]) -> ValidationFailedError:
    wrong = [name for name, value in user_context.items() if not isinstance(value, str)]
    problems = [FieldProblem(_WITHIN + name[:100], "must be a text") for name in wrong]
    return ValidationFailedError("All values of userContext must be texts.", errors=problems)


def _login_state(value: object) -> bool | None:
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
    "loginState": Parameter("is_logged_in", _login_state, "true or false"),
    "newVisitor": PARAMETERS["newVisitor"],
    "referrerDomain": PARAMETERS["referrer"],
    "segment": PARAMETERS["segment"],
}
_NAMES: Final = (*_PARAMETERS, LAST_PURCHASE_DAYS)
_decode: Final = BodyDecoder(ServeRequest).decode
_decode_bare: Final = msgspec.json.Decoder(_Bare).decode
_decode_context: Final = msgspec.json.Decoder(UserContext | None).decode
_is_written: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
UNKNOWN_VISITOR: Final = VisitorInfo(Overrides({}))
