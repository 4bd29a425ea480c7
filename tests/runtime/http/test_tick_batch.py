"""Requests of one turn of the loop: all answered, then all told, whatever becomes of one of them."""

import asyncio

from structlog.testing import capture_logs

from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastResult
from adloom.runtime.http.fast.tick_batch import TOGETHER_MAX, TickBatch

HEAD = b"HTTP/1.1 200 OK\r\n"


class Diary:
    """What happened, in its order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def answer(self, request: FastRequest) -> FastAnswer:
        """Answer, as a route does."""
        self.lines.append(f"answer {request.path.decode()}")
        return FastAnswer(HEAD, request.path)


class Client:
    """A connection that notes what it is told."""

    def __init__(self, diary: Diary, *, is_broken: bool = False) -> None:
        self.loop = asyncio.get_running_loop()
        self._diary = diary
        self._is_broken = is_broken

    def on_result(self, request: FastRequest, outcome: FastResult) -> None:
        if self._is_broken:
            raise RuntimeError("The socket is gone.")
        assert isinstance(outcome, FastAnswer)
        assert outcome.body == request.path
        self._diary.lines.append(f"tell {request.path.decode()}")


def asked(name: str) -> FastRequest:
    return FastRequest(b"GET", name.encode())


async def test_all_requests_of_a_tick_are_answered_before_the_first_is_written() -> None:
    diary, batch = Diary(), TickBatch()
    for name in ("a", "b", "c"):
        batch.add(Client(diary), diary.answer, asked(name))
    assert diary.lines == []

    await asyncio.sleep(0)

    assert diary.lines == ["answer a", "answer b", "answer c", "tell a", "tell b", "tell c"]


async def test_the_next_turn_is_answered_by_itself() -> None:
    diary, batch = Diary(), TickBatch()
    for name in ("a", "b"):
        batch.add(Client(diary), diary.answer, asked(name))
        await asyncio.sleep(0)

    assert diary.lines == ["answer a", "tell a", "answer b", "tell b"]


async def test_a_request_waits_for_a_bounded_number_of_others() -> None:
    diary, batch = Diary(), TickBatch()
    for number in range(TOGETHER_MAX + 1):
        batch.add(Client(diary), diary.answer, asked(f"{number}"))

    await asyncio.sleep(0)

    assert diary.lines[TOGETHER_MAX] == "tell 0"
    assert diary.lines[-2:] == [f"answer {TOGETHER_MAX}", f"tell {TOGETHER_MAX}"]


async def test_a_failing_connection_does_not_block_others() -> None:
    diary, batch = Diary(), TickBatch()
    batch.add(Client(diary, is_broken=True), diary.answer, asked("a"))
    batch.add(Client(diary), diary.answer, asked("b"))

    with capture_logs() as logs:
        await asyncio.sleep(0)

    assert diary.lines == ["answer a", "answer b", "tell b"]
    assert [entry["event"] for entry in logs] == ["answer_not_taken"]
