"""Which campaigns need leases, according to the index; when each has to report; which are in demand.

An idle campaign costs nothing. An excluded campaign never comes up in a request: so each placement notes that it was
requested, and a campaign without requests waits at its placements. `at` is a monotonic time.
"""

# pure

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Final, NamedTuple

from adloom.core.ids import AdvertiserId, CampaignId
from adloom.serving.index.index import Index
from adloom.serving.index.rows import LeaseTerms
from adloom.serving.leases.campaign_lease import CampaignLease

PlacementTerms = Mapping[int, Mapping[int, LeaseTerms]]  # By placement, the terms of its campaigns.


def collect_terms(index: Index) -> PlacementTerms:
    """Return the terms of all campaigns that need a lease where they are served."""
    return {
        key: one.terms
        for key, one in index.by_key.items()
        # A negative key: the creatives of a campaign for contextual slots.
        if one.terms and (one.is_served or one.is_auctioned or key < 0)
    }


class LeaseChanges(NamedTuple):
    """Campaigns that are new, whose terms or placements changed, and that no placement has any more."""

    new: set[int]
    changed: set[int]
    gone: set[int]


class LeaseRegistry:
    """The leases of all campaigns that need one, and of those that have not returned theirs yet."""

    def __init__(self) -> None:
        self.leases: dict[int, CampaignLease] = {}
        self._placed: PlacementTerms = {}
        self._keys: dict[CampaignId, int] = {}
        self._of_advertiser: dict[AdvertiserId | None, set[int]] = {}
        self._reported = 0  # The highest report number of dropped campaigns.
        self._multipliers: dict[int, float] = {}
        self.paced: set[int] = set()  # Campaigns that their pace leaves out of some requests.

    def find(self, campaign_id: CampaignId) -> tuple[int, CampaignLease] | None:
        key = self._keys.get(campaign_id)
        return None if key is None else (key, self.leases[key])

    def set_multiplier(self, key: int, lease: CampaignLease, multiplier: float) -> None:
        """Note what a campaign's bids are multiplied by."""
        if multiplier != lease.multiplier:
            lease.multiplier = self._multipliers[key] = multiplier

    def note_answer(self, key: int, lease: CampaignLease, multiplier: float) -> None:
        """Note what an answer says of a campaign's bids, and of its pace."""
        self.set_multiplier(key, lease, multiplier)
        if lease.throttle:
            self.paced.add(key)
        else:
            self.paced.discard(key)

    def is_paced(self, key: int) -> bool:
        """Whether the pace of a campaign leaves it out of some requests."""
        lease = self.leases.get(key)
        return lease is not None and lease.throttle > 0

    def take_multipliers(self) -> dict[int, float]:
        """Return the multipliers of bids that changed since the last call; without a lease bids are made in full."""
        multipliers, self._multipliers = self._multipliers, {}
        return multipliers

    def list_excluded(self) -> dict[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for key, lease in self.leases.items():
            if lease.reason is not None:
                found.setdefault(lease.reason, set()).add(key)
        return {reason: frozenset(keys) for reason, keys in found.items()}

    def list_of_advertiser(self, advertiser_id: AdvertiserId) -> list[tuple[int, CampaignLease]]:
        return [(key, self.leases[key]) for key in self._of_advertiser.get(advertiser_id, ())]

    def update(self, placed: PlacementTerms) -> LeaseChanges:
        """Apply the index; placements whose terms are the same object are skipped."""
        before, self._placed = self._placed, dict(placed)
        changes = LeaseChanges(set(), set(), set())
        for placement_key, terms in placed.items():
            known = before.get(placement_key, {})
            if known is terms:
                continue
            for key, one in terms.items():
                self._place(key, one, placement_key, changes)
            for key in known.keys() - terms.keys():
                self._displace(key, placement_key, changes)
        for placement_key in before.keys() - placed.keys():
            for key in before[placement_key]:
                self._displace(key, placement_key, changes)
        changes.gone.difference_update([key for key in changes.gone if self.leases[key].placements])
        for key in changes.gone:
            self.set_multiplier(key, self.leases[key], 1.0)
        return changes

    def drop(self, key: int) -> None:
        lease = self.leases.pop(key)
        self.paced.discard(key)
        self._reported = max(self._reported, lease.report)
        del self._keys[lease.terms.campaign_id]
        self._disown(key, lease)

    def _place(self, key: int, terms: LeaseTerms, placement_key: int, changes: LeaseChanges) -> None:
        lease = self.leases.get(key)
        if lease is None:
            lease = self.leases[key] = CampaignLease(terms)
            # It may have been here before in this session: then the budget service ignores lower numbers.
            lease.report = self._reported
            self._keys[terms.campaign_id] = key
            self._of_advertiser.setdefault(terms.advertiser_id, set()).add(key)
            changes.new.add(key)
        elif lease.terms != terms:
            self._disown(key, lease)
            lease.change_terms(terms)
            self._of_advertiser.setdefault(terms.advertiser_id, set()).add(key)
            changes.changed.add(key)
        elif placement_key not in lease.placements:
            changes.changed.add(key)
        lease.placements.add(placement_key)

    def _displace(self, key: int, placement_key: int, changes: LeaseChanges) -> None:
        lease = self.leases[key]
        lease.placements.discard(placement_key)
        if not lease.placements:
            changes.gone.add(key)

    def _disown(self, key: int, lease: CampaignLease) -> None:
        keys = self._of_advertiser[lease.terms.advertiser_id]
        keys.discard(key)
        if not keys:
            del self._of_advertiser[lease.terms.advertiser_id]


BACKGROUND_A_SECOND: Final = 5_000  # Campaigns that are not needed yet ask one after another.


class LeaseTimers:
    """Min-heaps of (due time, campaign). Entries may be stale; only one equal to `lease.due_at` counts."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int]] = []
        self._repeats: list[tuple[float, int]] = []
        self._ends: list[tuple[int, int]] = []
        self._in_turn_at = 0.0

    @property
    def next_at(self) -> float | None:
        return min((heap[0][0] for heap in (self._due, self._repeats) if heap), default=None)

    @property
    def next_end(self) -> int | None:
        """The second in which the next lease may end."""
        return self._ends[0][0] if self._ends else None

    def schedule(self, key: int, lease: CampaignLease, at: float) -> None:
        """Schedule a report, unless an earlier one is scheduled."""
        if lease.due_at is None or at < lease.due_at:
            self.reschedule(key, lease, at)

    def reschedule(self, key: int, lease: CampaignLease, at: float) -> None:
        """Schedule a report, and none before it."""
        lease.due_at = at
        heappush(self._due, (at, key))

    def schedule_repeat(self, key: int, lease: CampaignLease, at: float) -> None:
        """Repeat a report at a moment, unless it is answered before."""
        lease.due_at = at
        heappush(self._repeats, (at, key))

    def take_background_slot(self, at: float) -> float:
        """Return the next free moment for a campaign that can wait."""
        turn_at = max(self._in_turn_at, at)
        self._in_turn_at = turn_at + 1 / BACKGROUND_A_SECOND
        return turn_at

    def pop_due(self, at: float) -> Iterator[tuple[float, int]]:
        while self._due and self._due[0][0] <= at:
            yield heappop(self._due)

    def pop_repeats(self, at: float) -> Iterator[tuple[float, int]]:
        while self._repeats and self._repeats[0][0] <= at:
            yield heappop(self._repeats)

    def schedule_end(self, key: int, second: int) -> None:
        heappush(self._ends, (second, key))

    def pop_ended(self, second: int, *, most: int) -> Iterator[tuple[int, int]]:
        for _ in range(most):
            if not self._ends or self._ends[0][0] > second:
                return
            yield heappop(self._ends)

    def clear(self) -> None:
        self._due.clear()
        self._repeats.clear()
        self._ends.clear()


RECENT_SECONDS: Final = 2.0


class Demand:
    """Which placements were requested recently, and which campaigns wait for that."""

    def __init__(self, placements_of: Callable[[int], Iterable[int]]) -> None:
        self._placements_of = placements_of
        self._asked_at: dict[int, float] = {}
        self._waiting: dict[int, set[int]] = {}  # By placement.
        self._at = 0.0

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def record_requests(self, placement_keys: Iterable[int], *, at: float) -> set[int]:
        """Record requested placements, and return the campaigns that waited for them."""
        self._at = at
        found: set[int] = set()
        for placement_key in placement_keys:
            self._asked_at[placement_key] = at
            found |= self._waiting.pop(placement_key, set())
        return found

    def is_requested(self, campaign_key: int) -> bool:
        """Whether a campaign is in demand; if not, it waits for a request from now on."""
        placement_keys = list(self._placements_of(campaign_key))
        oldest = self._at - RECENT_SECONDS
        if any(self._asked_at.get(key, oldest) > oldest for key in placement_keys):
            return True
        for key in placement_keys:
            self._waiting.setdefault(key, set()).add(campaign_key)
        return False
