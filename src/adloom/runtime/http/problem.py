"""Errors as problem details (RFC 9457), with the `errorCode` and `message` that clients know."""

import msgspec

from adloom.core.errors import AdloomError, FieldProblem

PROBLEM_CONTENT_TYPE = "application/problem+json"


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The body of every answer that is an error."""

    type: str
    title: str
    status: int
    detail: str
    message: str
    error_code: str
    errors: tuple[FieldProblem, ...] = ()


_encode = msgspec.json.Encoder().encode


def build_problem(error: AdloomError) -> ProblemDetails:
    return ProblemDetails(
        type="about:blank",
        title=error.status.phrase,
        status=error.status.value,
        detail=error.detail,
        message=error.detail,
        error_code=error.code,
        errors=error.errors,
    )


def encode_problem(error: AdloomError) -> bytes:
    return _encode(build_problem(error))
