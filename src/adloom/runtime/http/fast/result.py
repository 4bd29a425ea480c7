"""What a hot request comes to, whatever happens in its handler."""

from asyncio import Future
from collections.abc import Callable

from adloom.core.errors import UnavailableError
from adloom.runtime.http.fast.early_errors import INTERNAL_FAILURE, answer_error
from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastHandler,
    FastRequest,
    FastResult,
    PendingAnswer,
    problem_answer,
)


def run_handler(handler: FastHandler, request: FastRequest) -> FastResult:
    """Ask a handler, and answer for it where it fails."""
    try:
        return handler(request)
    except Exception as error:  # noqa: BLE001 - the outermost frame of a hot request
        return answer_error(error)


def on_resolved(coming: PendingAnswer, call: Callable[[PendingAnswer, FastAnswer], object]) -> None:
    """Tell somebody the answer as soon as it is there; what has failed is answered for as well."""
    if isinstance(coming, DeferredAnswer):
        coming.add_callback(call)
    else:
        coming.add_done_callback(lambda future: call(future, _result_of(future)))


def _result_of(future: Future[FastAnswer]) -> FastAnswer:
    if future.cancelled():
        return problem_answer(UnavailableError("The answer was given up."))
    error = future.exception()
    if error is None:
        return future.result()
    return answer_error(error) if isinstance(error, Exception) else INTERNAL_FAILURE
