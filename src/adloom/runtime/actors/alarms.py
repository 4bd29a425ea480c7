"""When entities want to be woken: the next one is known at once, and those that sleep cost nothing."""

import heapq
from datetime import datetime
from typing import Final

from adloom.runtime.actors.effects import Address

REPLACED_MIN: Final = 1_000  # Fewer than these are not worth a look.


class Alarms:
    """One alarm an entity; a new one takes the place of the old."""

    def __init__(self) -> None:
        self._at: dict[Address, datetime] = {}
        self._heap: list[tuple[datetime, Address]] = []  # With some that were replaced since.

    def __len__(self) -> int:
        """Tell how many are set."""
        return len(self._at)

    def __contains__(self, address: Address) -> bool:
        """Tell whether an entity has one."""
        return address in self._at

    def set(self, address: Address, at: datetime | None) -> None:
        """Set an entity's alarm, or none."""
        if at is None:
            self._at.pop(address, None)
        elif self._at.get(address) != at:
            self._at[address] = at
            heapq.heappush(self._heap, (at, address))
            self._shed_replaced()

    def next_at(self) -> datetime | None:
        """Tell when the next one rings."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: datetime, *, count_max: int) -> list[Address]:
        """Take those that ring by now, the earliest first."""
        taken: list[Address] = []
        while len(taken) < count_max and (at := self.next_at()) is not None and at <= now:
            _, address = heapq.heappop(self._heap)
            del self._at[address]
            taken.append(address)
        return taken

    def clear(self) -> None:
        """Forget them all."""
        self._at.clear()
        self._heap.clear()

    def _shed_replaced(self) -> None:
        """Keep no more replaced ones than real ones: who moves its alarm with every message leaves many behind."""
        if len(self._heap) > 2 * len(self._at) + REPLACED_MIN:
            self._heap = [(at, address) for address, at in self._at.items()]
            heapq.heapify(self._heap)
