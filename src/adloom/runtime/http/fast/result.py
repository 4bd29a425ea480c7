"""What a hot request comes to, whatever happens in its handler."""

from asyncio import Future
from collections.abc import Callable

from adloom.core.errors import UnavailableError
from adloom.runtime.http.fast.early_errors import INTERNAL_FAILURE, answer_to
from adloom.runtime.http.fast.fast_routes import (
    Answer,
    Coming,
    HotHandler,
    HotOutcome,
    HotRequest,
    Later,
    problem_answer,
)


def outcome_of(handler: HotHandler, request: HotRequest) -> HotOutcome:
    """Ask a handler, and answer for it where it fails."""
    try:
        return handler(request)
    except Exception as error:  # noqa: BLE001 - the outermost frame of a hot request
        return answer_to(error)


def when_come(coming: Coming, call: Callable[[Coming, Answer], object]) -> None:
    """Tell somebody the answer as soon as it is there; what has failed is answered for as well."""
    if isinstance(coming, Later):
        coming.then(call)
    else:
        coming.add_done_callback(lambda future: call(future, _result_of(future)))


def _result_of(future: Future[Answer]) -> Answer:
    if future.cancelled():
        return problem_answer(UnavailableError("The answer was given up."))
    error = future.exception()
    if error is None:
        return future.result()
    return answer_to(error) if isinstance(error, Exception) else INTERNAL_FAILURE
