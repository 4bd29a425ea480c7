"""How many events each pair of address and campaign has in the current hour, in bounded memory.

A pair that comes often is shared: what other processes counted of it is added, a moment later. So all processes
together exceed the bound by no more than what each takes before it shares a pair, and in the time between two shares.
"""

# pure

from array import array
from typing import Final, TypeAlias

from adloom.events.ingest.ivt.recent_reports import RecentReports
from adloom.events.ingest.token import OfferToken

HOUR_SECONDS: Final = 3_600
COUNTERS: Final = 1 << 18  # 1 MB: pairs that meet in one are shared a little sooner.
_MASK: Final = COUNTERS - 1
_NO_COUNTS: Final = bytes(4 * COUNTERS)
# Beyond, others count for this process alone. 20,000 pairs are about 5 MB here, and 4 MB in Valkey.
SHARED_MAX: Final = 20_000
SHARED_PART: Final = 8  # A pair is shared from this part of the bound on.
# A provider gives a customer a /48 of IPv6 at most, which is counted as a whole too.
IPV6_KEY_BYTES: Final = 8
WIDE_BYTES: Final = 6
WIDE_FACTOR: Final = 4

# The network of an address, and the number of a campaign's id, which is faster to compare.
Pair: TypeAlias = tuple[bytes, int]


class SharedPair:
    """A pair that is counted together with other processes."""

    __slots__ = ("here", "others", "told")

    def __init__(self, here: int) -> None:
        self.here = here  # Counted by this process.
        self.told = 0  # Of these, what other processes know.
        self.others = 0  # Counted by them, as last read.


class PairCounts:
    """Counts of the current hour; a bound of zero is none."""

    def __init__(self, bound: int, *, shared_max: int = SHARED_MAX) -> None:
        self.bound = bound
        self._shared_from = max(1, bound // SHARED_PART)
        self._shared_max = shared_max
        self._counts = array("I", _NO_COUNTS) if bound else array("I")
        self.shared: dict[Pair, SharedPair] = {}
        self.hour = 0  # Since the epoch.
        self.begun = 0  # How many hours were begun, some of them again by a clock that was set back.
        self._begins = self._ends = 0
        self._count_report = RecentReports().count

    def exceeds(self, address: bytes, campaign: int, second: float, offer: OfferToken | None = None) -> bool:
        """Count an event of an offer, once if it is repeated, and return whether it is beyond the bound."""
        if not self.bound:
            return False
        # A clock that was set back begins another hour too.
        if not self._begins <= second < self._ends:
            self._begin(second)
        is_beyond = self._count((address, campaign), self.bound, offer)
        if len(address) == IPV6_KEY_BYTES:
            return self._count((address[:WIDE_BYTES], campaign), WIDE_FACTOR * self.bound, offer) or is_beyond
        return is_beyond

    def _begin(self, second: float) -> None:
        self._counts = array("I", _NO_COUNTS)
        self.shared = {}
        self.begun += 1
        self.hour = int(second) // HOUR_SECONDS
        self._begins = self.hour * HOUR_SECONDS
        self._ends = self._begins + HOUR_SECONDS

    def _count(self, pair: Pair, bound: int, offer: OfferToken | None) -> bool:
        counts = self._counts
        place = hash(pair) & _MASK
        counts[place] = count = counts[place] + 1
        if count < self._shared_from:
            return False
        one = self.shared.get(pair)
        step = 1 if offer is None else self._count_report(offer, False, pair[0])  # noqa: FBT003 - one kind only
        if one is not None:
            one.here += step
            return one.here + one.others > bound
        if len(self.shared) >= self._shared_max:
            return count > bound
        if not step:
            return False
        self.shared[pair] = SharedPair(self._shared_from)
        return self._shared_from > bound

    def list_pending(self) -> list[tuple[Pair, int]]:
        """Return the shared pairs with events that other processes do not know of yet, and how many this one has."""
        return [(pair, one.here) for pair, one in self.shared.items() if one.here != one.told]

    def note_shared(self, begun: int, pair: Pair, told: int, total: int) -> None:
        """Note what was shared, and how many all processes have shared by then."""
        one = self.shared.get(pair)
        if one is not None and begun == self.begun:
            one.told = told
            one.others = total - told
