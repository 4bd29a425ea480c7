"""Requests or events of each client address in a minute, in bounded memory, counted together with other processes.

An address that comes often is shared: what other processes counted of it is added to its count, a moment later. So all
processes together exceed a bound by no more than what each takes before it shares an address, and in the time between
two shares. The first that shares an address says when its minute ends.
"""

# pure

import math
from collections import OrderedDict
from typing import Final, NamedTuple

MINUTE_SECONDS: Final = 60
# A provider gives a customer a /48 of IPv6 at most: 65,536 networks of /64, which are counted together too.
IPV6_KEY_BYTES: Final = 8
WIDE_BYTES: Final = 6
WIDE_FACTOR: Final = 4
# A household often has a /56. Rate limits do not go by it: mobile networks give a /64 to each phone.
HOUSEHOLD_BYTES: Final = 7
HOUSEHOLD_FACTOR: Final = 2
ADDRESSES_MAX: Final = 50_000
SHARED_MAX: Final = 20_000  # Addresses beyond it are counted by this process alone.
SHARED_PART: Final = 8  # An address is shared from this part of the bound on.


class AddressCount:
    """The requests of an address in a minute that begins with the first of them."""

    __slots__ = (
        "_bound",
        "_count",
        "_key",
        "_limit",
        "_others",
        "_owner",
        "_shared",
        "_wide",
        "begins_at",
        "ends_at",
        "is_frequent",
    )

    def __init__(
        self, owner: "MinuteCounts", key: bytes, bound: float, wide: "AddressCount | None" = None
    ) -> None:
        self._owner = owner
        self._key = key
        self._bound = bound
        self._limit = bound  # Beyond it there is something to do.
        self._count = 0  # Here, and as far as it is known by other processes.
        self._others = 0  # Of these, what other processes have counted.
        self._shared = 0  # What they know of the rest.
        self._wide = wide
        self.is_frequent = False  # From a part of the bound on.
        self.begins_at = self.ends_at = 0.0

    @property
    def here(self) -> int:
        """What was counted by this process."""
        return self._count - self._others

    @property
    def is_shared(self) -> bool:
        return self.here == self._shared

    def exceeds(self, second: float, step: int = 1) -> bool:
        """Count one more, or none, and return whether that is beyond the bound."""
        # A clock that was set back begins another minute too.
        if self.begins_at <= second < self.ends_at:
            self._count = count = self._count + step
        else:
            count = self._begin(second, step)
        is_beyond = count > self._limit and self._check(count)
        return is_beyond if self._wide is None else self._wide.exceeds(second, step) or is_beyond

    def find_wait(self, second: float) -> int:
        """Return the seconds until a request is allowed again; at least one."""
        beyond = self if self._wide is None or self._count > self._bound else self._wide
        return max(1, math.ceil(beyond.ends_at - second))

    def is_current(self, second: float) -> bool:
        return self.begins_at <= second < self.ends_at

    def note_shared(self, shared: "PendingCount", total: int, ends_at: float) -> None:
        """Note what other processes have counted; `total` is of all processes, with what this one shared."""
        if shared.begins_at == self.begins_at:
            others = total - shared.requests
            self._count += others - self._others
            self._others, self._shared = others, shared.requests
            self.ends_at = ends_at

    def _begin(self, second: float, step: int) -> int:
        self.begins_at, self.ends_at = second, second + MINUTE_SECONDS
        self._count, self._others, self._shared = step, 0, 0
        self.is_frequent = False
        self._limit = self._bound if self._bound == math.inf else self._bound // SHARED_PART
        return step

    def _check(self, count: int) -> bool:
        if self._limit < self._bound:
            self._limit = self._bound
            self.is_frequent = True
            self._owner.share(self._key, self)
        return count > self._bound


class PendingCount(NamedTuple):
    """What a process has counted of an address in its minute, and has not shared in full."""

    key: bytes
    address: AddressCount
    begins_at: float
    requests: int
    seconds_left: float


class MinuteCounts:
    """The counts of all addresses; a bound of zero is none.

    Of too many addresses the first to come is forgotten, and begins again; one that comes often is not.
    """

    def __init__(
        self,
        bound: int,
        *,
        counts_households: bool = False,
        addresses_max: int = ADDRESSES_MAX,
        shared_max: int = SHARED_MAX,
    ) -> None:
        self._bound = bound or math.inf
        self._counts_households = counts_households
        self._addresses_max = addresses_max
        self._shared_max = shared_max
        self._counts: OrderedDict[bytes, AddressCount] = OrderedDict()
        self._shared: dict[bytes, AddressCount] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def exceeds(self, key: bytes, second: float) -> bool:
        """Count one more of an address, and return whether that is beyond the bound."""
        return self.find(key).exceeds(second)

    def find(self, key: bytes) -> AddressCount:
        return self._counts.get(key) or self._begin(key)

    def share(self, key: bytes, count: AddressCount) -> None:
        if len(self._shared) < self._shared_max:
            self._shared[key] = count

    def list_pending(self, second: float) -> list[PendingCount]:
        """Return shared addresses with something to tell; those whose minute is over are left."""
        self._shared = {key: one for key, one in self._shared.items() if one.is_current(second)}
        return [
            PendingCount(key, one, one.begins_at, one.here, one.ends_at - second)
            for key, one in self._shared.items()
            if not one.is_shared
        ]

    def _begin(self, key: bytes) -> AddressCount:
        wide = None
        if len(key) == IPV6_KEY_BYTES:
            wide = self._add(key[:WIDE_BYTES], WIDE_FACTOR)
            if self._counts_households:
                wide = self._add(key[:HOUSEHOLD_BYTES], HOUSEHOLD_FACTOR, wide)
        return self._add(key, 1, wide)

    def _add(self, key: bytes, factor: int, wide: AddressCount | None = None) -> AddressCount:
        """Return the count of an address or network that is counted or shared already, or begin it."""
        count = self._counts.get(key)
        if count is None:
            count = self._shared.get(key) or AddressCount(self, key, factor * self._bound, wide)
            self._counts[key] = count
            if len(self._counts) > self._addresses_max:
                self._counts.popitem(last=False)
        return count
