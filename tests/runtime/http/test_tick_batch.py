"""Requests of one event-loop iteration: all are answered, then all answers are written, whatever fails."""

import asyncio

from structlog.testing import capture_logs

from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastResult
from adloom.runtime.http.fast.tick_batch import QUIET_SECONDS, TOGETHER_MAX, TickBatch

HEAD = b"HTTP/1.1 200 OK\r\n"


class Journal:
    """Everything that happened, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def answer(self, request: FastRequest) -> FastAnswer:
        """Answer, as a route does."""
        self.lines.append(f"answer {request.path.decode()}")
        return FastAnswer(HEAD, request.path)


class Client:
    """A connection that records the answers that it writes."""

    def __init__(self, journal: Journal, *, is_broken: bool = False) -> None:
        self.loop = asyncio.get_running_loop()
        self._journal = journal
        self._is_broken = is_broken

    def on_result(self, request: FastRequest, outcome: FastResult) -> None:
        if self._is_broken:
            raise RuntimeError("The socket is gone.")
        assert isinstance(outcome, FastAnswer)
        assert outcome.body == request.path
        self._journal.lines.append(f"write {request.path.decode()}")


def a_request(name: str) -> FastRequest:
    return FastRequest(b"GET", name.encode())


async def test_all_requests_of_an_event_loop_iteration_are_answered_before_the_first_is_written() -> None:
    journal, batch = Journal(), TickBatch()
    for name in ("a", "b", "c"):
        batch.add(Client(journal), journal.answer, a_request(name))
    assert journal.lines == []

    await asyncio.sleep(0)

    assert journal.lines == ["answer a", "answer b", "answer c", "write a", "write b", "write c"]


async def test_each_event_loop_iteration_is_answered_separately() -> None:
    journal, batch = Journal(), TickBatch()
    for name in ("a", "b"):
        batch.add(Client(journal), journal.answer, a_request(name))
        await asyncio.sleep(0)

    assert journal.lines == ["answer a", "write a", "answer b", "write b"]


async def test_a_request_waits_for_a_bounded_number_of_others() -> None:
    journal, batch = Journal(), TickBatch()
    for number in range(TOGETHER_MAX + 1):
        batch.add(Client(journal), journal.answer, a_request(f"{number}"))

    await asyncio.sleep(0)

    assert journal.lines[TOGETHER_MAX] == "write 0"
    assert journal.lines[-2:] == [f"answer {TOGETHER_MAX}", f"write {TOGETHER_MAX}"]


async def test_a_failing_connection_does_not_block_others() -> None:
    journal, batch = Journal(), TickBatch()
    batch.add(Client(journal, is_broken=True), journal.answer, a_request("a"))
    batch.add(Client(journal), journal.answer, a_request("b"))

    with capture_logs() as logs:
        await asyncio.sleep(0)

    assert journal.lines == ["answer a", "answer b", "write b"]
    assert [entry["event"] for entry in logs] == ["answer_not_taken"]


def test_a_request_is_batched_only_if_another_came_just_before() -> None:
    batch, now = TickBatch(), 100.0

    assert not batch.record_arrival(now)
    assert batch.record_arrival(now)
    assert batch.record_arrival(now + QUIET_SECONDS / 2)
    assert not batch.record_arrival(now + QUIET_SECONDS / 2 + 2 * QUIET_SECONDS)
