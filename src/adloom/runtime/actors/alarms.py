"""Alarms of actors: the next one is known at once, and sleeping actors cost nothing."""

import heapq
from datetime import datetime
from typing import Final

from adloom.runtime.actors.actor import Address

STALE_MIN: Final = 1_000  # Fewer stale entries are not worth a clean-up.


class Alarms:
    """At most one alarm per actor; a new one replaces the old."""

    def __init__(self) -> None:
        self._at: dict[Address, datetime] = {}
        self._heap: list[tuple[datetime, Address]] = []  # May hold stale entries; `_at` decides.

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, address: Address) -> bool:
        return address in self._at

    def set(self, address: Address, at: datetime | None) -> None:
        """Set an actor's alarm; None removes it."""
        if at is None:
            self._at.pop(address, None)
        elif self._at.get(address) != at:
            self._at[address] = at
            heapq.heappush(self._heap, (at, address))
            self._drop_stale()

    def next_at(self) -> datetime | None:
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: datetime, *, count_max: int) -> list[Address]:
        """Remove and return the actors whose alarms are due, the earliest first."""
        taken: list[Address] = []
        while len(taken) < count_max and (at := self.next_at()) is not None and at <= now:
            _, address = heapq.heappop(self._heap)
            del self._at[address]
            taken.append(address)
        return taken

    def clear(self) -> None:
        self._at.clear()
        self._heap.clear()

    def _drop_stale(self) -> None:
        """Bound the heap: an actor that moves its alarm with every message leaves many stale entries."""
        if len(self._heap) > 2 * len(self._at) + STALE_MIN:
            self._heap = [(at, address) for address, at in self._at.items()]
            heapq.heapify(self._heap)
