"""What a request for an auction says: for whom, where, and what is known of the reader."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from adloom.auction.score import Signals
from adloom.core.errors import FieldProblem, ValidationFailedError
from adloom.delivery.overrides import BOOLEANS, PARAMETERS, Overrides, Parameter, overrides_of
from adloom.runtime.http.body import BodyDecoder
from adloom.targeting.context import Context

DEFAULT_TYPE: Final = "feed"
NOBODY: Final = UUID(int=0)  # What some programs send where they know no user.
CONTEXT_KEYS_MAX: Final = 64
CONTEXTS_REMEMBERED_MAX: Final = 4_096
LAST_PURCHASE_DAYS: Final = "lastPurchaseDays"
DAYS_DIGITS_MAX: Final = 6

_WITHIN: Final = "userContext."
_LOGIN_STATES: Final = BOOLEANS | {"logged_in": True, "logged_out": False}


class ServeRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Somebody wants an ad for a user: on any placement of a type, or on one that is named."""

    user_id: UUID
    placement_type: Annotated[str, Meta(min_length=1, max_length=50)] | None = None
    placement: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    user_context: Annotated[dict[str, Any], Meta(max_length=CONTEXT_KEYS_MAX)] | None = None


class Reader(msgspec.Struct, frozen=True):
    """What a request says of its reader in so many words."""

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


decode: Final = BodyDecoder(ServeRequest).decode


def reader_of(user_context: Mapping[str, Any] | None) -> Reader:
    """Read what is known of the reader; names that nobody knows are ignored, all values are texts."""
    if not user_context:
        return UNKNOWN
    for value in user_context.values():
        if not isinstance(value, str):
            raise _wrong_kind(user_context)
    return _read(tuple([user_context.get(name) for name in _NAMES]))


@lru_cache(CONTEXTS_REMEMBERED_MAX)
def _read(values: tuple[str | None, ...]) -> Reader:
    """Read the values of all names; what was refused is not remembered, so what is remembered is short."""
    given = {name: value for name, value in zip(_NAMES, values, strict=True) if value is not None}
    days = given.pop(LAST_PURCHASE_DAYS, "")
    overrides = overrides_of(given, within=_WITHIN, parameters=_PARAMETERS)
    return Reader(overrides, _days_of(days) if days else None)


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
UNKNOWN: Final = Reader(Overrides({}))
