"""Errors that users can cause. A class has a status and a code; the code may be that of one noun.

They are raised where the rule is and rendered in one place, `runtime.http.problem`.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import ClassVar, cast

import msgspec


class CommandError(Exception):
    """What whoever types a command can mend; its message is printed without a traceback."""


def find_command_error(error: BaseException) -> CommandError | None:
    """Return the one that an error is, alone in groups of tasks or not."""
    if isinstance(error, BaseExceptionGroup):
        # Of whatever kind: the stubs have a group of a known one.
        inner = cast("Sequence[BaseException]", error.exceptions)
        return find_command_error(inner[0]) if len(inner) == 1 else None
    return error if isinstance(error, CommandError) else None


class FieldProblem(msgspec.Struct, frozen=True):
    """One field of the input and what to change about it."""

    field: str
    message: str


class AdloomError(Exception):
    """Base of all errors with a code; never raised itself."""

    code: str
    status: ClassVar[HTTPStatus]

    def __init__(self, detail: str, *, errors: Sequence[FieldProblem] = (), code: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        if code:
            self.code = code


class BadRequestError(AdloomError):
    """What was asked cannot be done as asked."""

    code = "BAD_REQUEST"
    status = HTTPStatus.BAD_REQUEST


class ValidationFailedError(BadRequestError):
    """Fields of the input are wrong; `errors` names each."""

    code = "VALIDATION_FAILED"


def make_field_error(field: str, message: str, detail: str = "") -> ValidationFailedError:
    """Make the error of one field; `message` goes on after its name: "must be a number"."""
    return ValidationFailedError(detail or f"{field} {message}.", errors=[FieldProblem(field, message)])


def describe_error(error: Exception) -> str:
    """Return the message of an error, or its class: time that ran out has no message."""
    return str(error) or type(error).__name__


class UnauthenticatedError(AdloomError):
    """No token, or one that is not valid."""

    code = "UNAUTHENTICATED"
    status = HTTPStatus.UNAUTHORIZED


class ForbiddenError(AdloomError):
    """A role that may never do the thing."""

    code = "FORBIDDEN"
    status = HTTPStatus.FORBIDDEN


class NotFoundError(AdloomError):
    """Not there, or not yours: the two look the same from outside."""

    code = "NOT_FOUND"
    status = HTTPStatus.NOT_FOUND


class BannerNotFoundError(NotFoundError):
    """No such banner, or it belongs to another account.

    Only these three errors of single nouns are here: catalog, events and serving raise them.
    """

    code = "BANNER_NOT_FOUND"


class PlacementNotFoundError(NotFoundError):
    """No such placement, or it belongs to another account."""

    code = "PLACEMENT_NOT_FOUND"


class CampaignNotFoundError(NotFoundError):
    """No such campaign, or it belongs to another account."""

    code = "CAMPAIGN_NOT_FOUND"


class MethodNotAllowedError(AdloomError):
    """The address is there, the method is not."""

    code = "METHOD_NOT_ALLOWED"
    status = HTTPStatus.METHOD_NOT_ALLOWED


class ConflictError(AdloomError):
    """The write collides with what is there."""

    code = "CONFLICT"
    status = HTTPStatus.CONFLICT


def make_taken_error(field: str, detail: str, *, code: str) -> ConflictError:
    """Make the error of a value that something else has already, and that only one may have."""
    problem = FieldProblem(field, "is in use; choose another one")
    return ConflictError(detail, errors=[problem], code=code)


class StaleWriteError(ConflictError):
    """The thing has changed since its client read it."""

    code = "STALE_WRITE"

    def __init__(self, what: str = "This") -> None:
        super().__init__(f"{what} was changed after you read it; nothing was written. Read it again first.")


class BodyTooLargeError(AdloomError):
    """The body is over the bound of its route."""

    code = "BODY_TOO_LARGE"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class RateLimitedError(AdloomError):
    """Too many requests of one address."""

    code = "RATE_LIMITED"
    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, detail: str, *, retry_after_seconds: int) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class UnavailableError(AdloomError):
    """A part we need does not answer; the client should come back."""

    code = "UNAVAILABLE"
    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, detail: str, *, retry_after_seconds: int = 1) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds
