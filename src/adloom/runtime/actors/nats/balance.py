"""Which shards a worker gives up so that all have their share, and which have no owner."""

# pure

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from adloom.runtime.actors.actor import SHARDS

BEAT_SECONDS: Final = 0.5
# After so many seconds without a beat a worker does not count any more.
SILENT_SECONDS_MAX: Final = 2.0
GIVEN_UP_MAX: Final = 10  # In one beat.


class WorkerBeat(msgspec.Struct, frozen=True, array_like=True):
    """What a worker says of itself; a wrong one costs balance and never correctness."""

    name: str
    shards: tuple[int, ...]
    version: str
    is_leaving: bool = False


class Peers:
    """The other workers, by their last messages; times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._last_beats: dict[str, tuple[float, WorkerBeat]] = {}

    def record_beat(self, beat: WorkerBeat, *, at: float) -> None:
        if beat.is_leaving:
            self._last_beats.pop(beat.name, None)
        else:
            self._last_beats[beat.name] = at, beat

    def list_alive(self, at: float) -> list[WorkerBeat]:
        alive = {
            name: heard for name, heard in self._last_beats.items() if at - heard[0] <= SILENT_SECONDS_MAX
        }
        self._last_beats = alive
        return [beat for _, beat in alive.values()]


def find_share(workers: int) -> int:
    """Return how many shards a worker may hold."""
    return -(-SHARDS // workers)


def choose_given_up(held: Sequence[int], peers: Iterable[WorkerBeat]) -> list[int]:
    """Choose the shards that this worker gives up now: those beyond its share, a few at a time."""
    others = list(peers)
    beyond = len(held) - find_share(1 + len(others))
    return sorted(held)[: max(0, min(beyond, GIVEN_UP_MAX))] if others else []


def find_unowned(held: Iterable[int], peers: Iterable[WorkerBeat]) -> set[int]:
    """Return the shards that no worker says it holds."""
    owned = set(held).union(*(beat.shards for beat in peers))
    return set(range(SHARDS)) - owned
