"""Timing of fast routes."""

import asyncio

from adloom.runtime.http.fast.fast_routes import FastAnswer, FastHandler, FastRequest, FastRoute
from adloom.runtime.http.fast.sampled_routes import SAMPLES_MAX, ServeTimes

REQUEST = FastRequest(b"GET", b"/")


def answer_at_once(_request: FastRequest) -> FastAnswer:
    return FastAnswer(b"")


def a_route(handler: FastHandler = answer_at_once) -> FastRoute:
    return FastRoute(b"GET", b"/", is_prefix=False, handler=handler)


def test_there_are_no_samples_before_the_first_call() -> None:
    assert ServeTimes().compute_quantile(0.5) is None


def test_one_call_in_n_is_measured_and_every_call_is_answered() -> None:
    times, calls = ServeTimes(one_in=4), 0

    def handle(_request: FastRequest) -> FastAnswer:
        nonlocal calls
        calls += 1
        return FastAnswer(b"", str(calls).encode())

    route = times.measure(a_route(handle))
    answers = [route.handler(REQUEST) for _ in range(9)]

    assert [answer.body for answer in answers if isinstance(answer, FastAnswer)] == [
        str(number).encode() for number in range(1, 10)
    ]
    assert times.samples == 3


def test_only_the_last_samples_are_kept() -> None:
    times = ServeTimes(one_in=1)
    route = times.measure(a_route())
    for _ in range(SAMPLES_MAX + 10):
        route.handler(REQUEST)

    assert times.samples == SAMPLES_MAX
    assert sum(times.within) == SAMPLES_MAX + 10, "the histogram has all of them"
    assert times.seconds_sum > 0
    assert (
        (times.compute_quantile(0.0) or 0)
        <= (times.compute_quantile(0.5) or 0)
        <= (times.compute_quantile(1.0) or 0)
    )


async def test_a_late_answer_is_measured_when_it_is_done() -> None:
    times = ServeTimes(one_in=1)
    future: asyncio.Future[FastAnswer] = asyncio.get_running_loop().create_future()

    def answer_later(_request: FastRequest) -> asyncio.Future[FastAnswer]:
        return future

    times.measure(a_route(answer_later)).handler(REQUEST)
    before = times.samples

    future.set_result(FastAnswer(b""))
    await asyncio.sleep(0)

    assert (before, times.samples) == (0, 1)
