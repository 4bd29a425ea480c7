"""Everything that goes wrong on the control plane becomes a problem, here and nowhere else."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import asyncpg
import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic.alias_generators import to_camel
from redis.exceptions import ConnectionError as ValkeyConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as ValkeyTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from adloom.core.errors import (
    AdloomError,
    BadRequestError,
    FieldProblem,
    MethodNotAllowedError,
    NotFoundError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
    ValidationFailedError,
)
from adloom.runtime.http.api.routes import describe_outage
from adloom.runtime.http.problem import PROBLEM_CONTENT_TYPE, encode_problem

log: structlog.stdlib.BoundLogger = structlog.get_logger()

ERRORS_MAX: Final = 50  # A body of 1 MiB can have a hundred thousand wrong fields; no reader needs so many.
FIELD_LENGTH_MAX: Final = 200
RETRY_SECONDS: Final = 1

# A part that does not answer, or a transaction that lost against another one: trying again helps.
OUTAGES: Final = (
    OSError,
    TimeoutError,
    ValkeyConnectionError,
    ValkeyTimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
)
# A text that the database does not store, in a field that did not say so itself.
UNSTORABLE: Final = (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError)
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_PARTS_OF_A_REQUEST: Final = frozenset({"body", "query", "path", "header", "cookie"})
_MESSAGES: Final = {
    "missing": "is required",
    "extra_forbidden": "is not a field that we know",
    "repeated": "must be given only once",
    "json_invalid": "is not valid JSON",
    "model_attributes_type": "must be a JSON object, sent with the content type application/json",
    "model_type": "must be an object",
    "string_unicode": "must be valid Unicode text",
    "string_type": "must be text",
    "string_too_short": "must have {min_length} or more characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "is_instance_of": "must be a list",  # Only a Sequence is checked so.
    "sequence_str": "must be a list",
    "too_short": "must have {min_length} or more items",
    "too_long": "must have at most {max_length} items",
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be less than {lt}",
    "int_parsing_size": "has too many digits",
    "decimal_max_places": "must have at most {decimal_places} decimals",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
}
# By the first word of other kinds: `int` of `int_parsing`, `int_type` and `int_from_float`.
_MESSAGES_OF_TYPES: Final = {
    "bool": "must be true or false",
    "date": "must be a date such as 2026-11-18",
    "datetime": "must be a date and a time such as 2026-11-18T12:00:00Z",
    "decimal": "must be a number",
    "dict": "must be an object",
    "finite": "must be a number",
    "float": "must be a number",
    "frozen": "must be a list",
    "int": "must be a whole number",
    "list": "must be a list",
    "set": "must be a list",
    "time": "must be a time of day such as 09:30",
    "tuple": "must be a list",
    "timezone": "must have a time zone, such as 2026-11-18T12:00:00Z",
    "uuid": "must be an id such as 01a1ee54-30c5-72fb-ad0c-9a66750e8905",
}


def install_problem_handlers(app: FastAPI) -> None:
    """Answer errors with problem details instead of the framework's own format."""
    app.add_exception_handler(AdloomError, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_framework)
    app.add_exception_handler(asyncpg.DataError, _answer_unstorable)
    for outage in (*OUTAGES, asyncpg.InterfaceError):
        app.add_exception_handler(outage, _answer_outage)


def build_problem_response(error: AdloomError, headers: Mapping[str, str] | None = None) -> Response:
    own: dict[str, str] = {}
    if isinstance(error, RateLimitedError | UnavailableError):
        own["Retry-After"] = str(error.retry_after_seconds)
    if isinstance(error, UnauthenticatedError):
        own["WWW-Authenticate"] = "Bearer"
    return Response(
        encode_problem(error), error.status, {**own, **(headers or {})}, media_type=PROBLEM_CONTENT_TYPE
    )


def list_field_problems(errors: Sequence[Mapping[str, Any]]) -> tuple[FieldProblem, ...]:
    """Describe what is wrong with each field, by the client's names."""
    messages: dict[str, str] = {}
    for error in errors[:ERRORS_MAX]:
        field = _name_field(error["loc"])
        # Pydantic counts only items that are right: a list of 24 with a wrong one would be too short.
        if error["type"] == "too_short" and any(other.startswith(f"{field}.") for other in messages):
            continue
        messages.setdefault(field, _write_message(error))
    return tuple(FieldProblem(field, message) for field, message in messages.items())


def _name_field(location: Sequence[str | int]) -> str:
    parts = list(location)
    if parts and parts[0] in _PARTS_OF_A_REQUEST:
        is_of_path = parts.pop(0) == "path"
        parts = [to_camel(str(part)) for part in parts] if is_of_path else parts
    return _make_printable(".".join(str(part) for part in parts))[:FIELD_LENGTH_MAX] or "body"


def _write_message(error: Mapping[str, Any]) -> str:
    kind: str = error["type"]
    if kind == "value_error":
        return str(error["msg"]).removeprefix("Value error, ")
    if kind in {"too_short", "too_long"} and isinstance(error["input"], str):
        kind = f"string_{kind}"
    if kind == "model_attributes_type" and _name_field(error["loc"]) != "body":
        kind = "model_type"  # A part of the body: how that was sent is not what is wrong.
    said = _MESSAGES.get(kind) or _MESSAGES_OF_TYPES.get(kind.partition("_")[0])
    return _make_printable(said.format_map(error.get("ctx", {})) if said else str(error["msg"]))


def _make_printable(text: str) -> str:
    # Names and messages may repeat what a client made up, half surrogates included.
    return text.encode(errors="replace").decode()


async def _answer_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, AdloomError)
    if isinstance(error, UnavailableError):
        _log_cause(error)
    return build_problem_response(error)


async def _answer_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = list_field_problems(error.errors())
    if any(one["type"] == "json_invalid" for one in error.errors()):
        problems = (FieldProblem("body", _MESSAGES["json_invalid"]),)
    # Some messages are sentences already.
    detail = "; ".join(f"{problem.field}: {problem.message.removesuffix('.')}" for problem in problems[:3])
    return build_problem_response(ValidationFailedError(f"{detail}.", errors=problems))


async def _answer_framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    # The framework wraps whatever is raised while it reads a body; ours is inside.
    if isinstance(error.__cause__, AdloomError):
        return build_problem_response(error.__cause__)
    match error.status_code:
        case 404:
            return build_problem_response(NotFoundError("There is nothing at this address."))
        case 405:
            detail = f"This address does not take {request.method}."
            return build_problem_response(MethodNotAllowedError(detail), {"Allow": _list_methods(request)})
        case _:
            problem = FieldProblem("body", "cannot be read as JSON")
            return build_problem_response(
                ValidationFailedError("The body cannot be read as JSON.", errors=[problem])
                if error.status_code == BadRequestError.status
                else BadRequestError("The request cannot be answered as it is.")
            )


def _list_methods(request: Request) -> str:
    # The framework would name those of one route only; an address has a route for each of its methods.
    routes: Sequence[BaseRoute] = request.app.routes
    scopes = ({**request.scope, "method": method} for method in _METHODS)
    return ", ".join(
        scope["method"] for scope in scopes if any(route.matches(scope)[0] is Match.FULL for route in routes)
    )


def find_outage(error: Exception, method: str) -> UnavailableError | None:
    """Return what a client is told if a part did not answer, and log why; None for all other errors."""
    # The driver raises "interface error" for lost connections and for wrong calls.
    is_wrong_call = isinstance(error, asyncpg.InternalClientError | ValueError)
    if is_wrong_call or not isinstance(error, (*OUTAGES, asyncpg.InterfaceError)):
        return None
    _log_cause(error)
    part = "Valkey" if isinstance(error, RedisError) else "A part that is needed for this"
    detail = describe_outage(f"{part} does not answer.", method)
    return UnavailableError(detail, retry_after_seconds=RETRY_SECONDS)


async def _answer_unstorable(_request: Request, error: Exception) -> Response:
    # Half a surrogate does not even leave the driver. All else that the database cannot read is our own mistake.
    if not isinstance(error, UNSTORABLE) and not isinstance(error.__cause__, UnicodeEncodeError):
        raise error
    return build_problem_response(
        BadRequestError("A text of the request has a character that cannot be stored, such as NUL.")
    )


async def _answer_outage(request: Request, error: Exception) -> Response:
    outage = find_outage(error, request.method)
    if outage is None:
        raise error
    return build_problem_response(outage)


def _log_cause(error: Exception) -> None:
    # One line beside the one that each request has anyway, with the same id.
    log.warning("request_unavailable", error=repr(error.__cause__ or error))
