"""An event loop on virtual time, which never sleeps; seeded randomness; and the digest that shows equal runs.

Two overrides make the loop: `time` returns the virtual moment, and `call_soon` puts what is ready at a
place that the seed chooses. Where the real loop would sleep, the selector moves the moment on.
"""

import asyncio
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from hashlib import blake2b
from random import Random  # noqa: TID251 - the one home of it
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack, cast
from uuid import UUID

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# Doing something takes time. Without it, a callback that asyncio runs a nanosecond early, as it may, would find for
# ever that it is not time yet.
ROUND_SECONDS: Final = 1e-9
ROUNDS_AT_ONCE_MAX: Final = 200_000  # Without time passing: a busy loop.
_VERSION_7: Final = 0x7 << 76
_VARIANT: Final = 0b10 << 62


def make_random(seed: int, purpose: str) -> Random:
    """One source per purpose: what one draws does not shift what another draws."""
    return Random(f"{seed}:{purpose}")  # noqa: S311 - no secret is made of it


class SeededIds:
    """Identifiers that look like UUIDv7, later ones sorting after earlier ones."""

    def __init__(self, seed: int) -> None:
        self._chance = make_random(seed, "ids")
        self._made = 0

    def make(self) -> UUID:
        self._made += 1
        return UUID(int=(self._made << 80) | _VERSION_7 | _VARIANT | self._chance.getrandbits(62))

    def make_opaque(self) -> UUID:
        return self.make()


class Trace:
    """Hashes every event of a run; storing them would take too much memory over days."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self.steps = 0

    def note(self, what: str, detail: bytes = b"") -> None:
        moment = asyncio.get_running_loop().time()
        self._hash.update(b"%d %b %b\n" % (round(moment * 1e6), what.encode(), detail))
        self.steps += 1

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


class StuckError(Exception):
    """A deadlock, or a busy loop: all tasks wait and no timer is set, or one never waits."""


class _NeverSleeping(selectors.SelectSelector):
    """Skips the time that it is asked to wait; there is nothing outside to wait for."""

    def __init__(self, skip: Callable[[float], None]) -> None:
        super().__init__()
        self._skip = skip
        self._rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let the time pass at once."""
        self._rounds = 0 if timeout else self._rounds + 1
        if timeout is None or self._rounds > ROUNDS_AT_ONCE_MAX:
            self._rounds = 0  # Cleaning up afterwards starts from zero.
            raise StuckError
        self._skip(timeout + ROUND_SECONDS)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs days in seconds, in an order that its seed decides."""

    def __init__(self, seed: int) -> None:
        self._now = 0.0
        self._chance = make_random(seed, "order")
        super().__init__(_NeverSleeping(self._skip))

    def time(self) -> float:
        """Return the virtual moment, in seconds since the start."""
        return self._now

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Put a callback among those that are ready, at any place."""
        handle = super().call_soon(callback, *args, context=context)
        # There is no other way in.
        ready = cast("deque[asyncio.Handle]", self._ready)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - private
        place = self._chance.randrange(len(ready))
        ready[place], ready[-1] = ready[-1], ready[place]
        return handle

    def _skip(self, seconds: float) -> None:
        self._now += seconds


def run(seed: int, main: Coroutine[Any, Any, T]) -> T:
    """Run to the end on virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        return runner.run(main)
