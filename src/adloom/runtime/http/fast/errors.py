"""Errors of fast routes: rejections before any route is called, which close the connection, and failures of handlers."""

from asyncio import Future
from collections.abc import Callable
from http import HTTPStatus

import structlog

from adloom.core.errors import AdloomError, UnavailableError
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    PendingAnswer,
    make_problem_answer,
)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class UriTooLongError(AdloomError):
    """The request line is over its bound."""

    code = "URI_TOO_LONG"
    status = HTTPStatus.REQUEST_URI_TOO_LONG


class HeadersTooLargeError(AdloomError):
    """The headers, or the trailers of a chunked body, are over their bounds."""

    code = "HEADERS_TOO_LARGE"
    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


class RequestTimeoutError(AdloomError):
    """The request did not arrive in time."""

    code = "REQUEST_TIMEOUT"
    status = HTTPStatus.REQUEST_TIMEOUT


class ExpectationFailedError(AdloomError):
    """An `Expect` other than 100-continue."""

    code = "EXPECTATION_FAILED"
    status = HTTPStatus.EXPECTATION_FAILED


class MethodNotImplementedError(AdloomError):
    """A method that turns the connection into something else."""

    code = "METHOD_NOT_IMPLEMENTED"
    status = HTTPStatus.NOT_IMPLEMENTED


class HttpVersionNotSupportedError(AdloomError):
    """A version of HTTP that is not spoken here."""

    code = "HTTP_VERSION_NOT_SUPPORTED"
    status = HTTPStatus.HTTP_VERSION_NOT_SUPPORTED


class InternalFailureError(AdloomError):
    """A fault of ours; the log knows more than the client."""

    code = "INTERNAL_ERROR"
    status = HTTPStatus.INTERNAL_SERVER_ERROR


class RequestRejectedError(Exception):
    """Raised inside the parser to stop it: the connection gives this answer and closes."""

    def __init__(self, answer: FastAnswer) -> None:
        super().__init__()
        self.answer = answer


def find_rejection(error: AdloomError) -> RequestRejectedError:
    return RequestRejectedError(make_problem_answer(error))


INTERNAL_FAILURE = make_problem_answer(InternalFailureError("Something went wrong on our side."))


def answer_error(error: Exception) -> FastAnswer:
    """Answer one of our errors with its own text; any other is logged and answered without details."""
    if isinstance(error, AdloomError):
        return make_problem_answer(error)
    log.error("hot_request_failed", exc_info=error)
    return INTERNAL_FAILURE


def on_resolved(coming: PendingAnswer, call: Callable[[PendingAnswer, FastAnswer], object]) -> None:
    """Call back with the answer as soon as it is there; a failure becomes an answer."""
    if isinstance(coming, DeferredAnswer):
        coming.add_callback(call)
    else:
        coming.add_done_callback(lambda future: call(future, _get_result(future)))


def _get_result(future: Future[FastAnswer]) -> FastAnswer:
    if future.cancelled():
        return make_problem_answer(UnavailableError("The answer was given up."))
    error = future.exception()
    if error is None:
        return future.result()
    return answer_error(error) if isinstance(error, Exception) else INTERNAL_FAILURE
