"""Which campaigns need leases, by key, by id and by advertiser, according to the index."""

# pure

from collections.abc import Mapping
from typing import NamedTuple

from adloom.core.ids import AdvertiserId, CampaignId
from adloom.serving.index.rows import LeaseTerms
from adloom.serving.leases.campaign_lease import CampaignLease

PlacementTerms = Mapping[int, Mapping[int, LeaseTerms]]  # By placement, the terms of its campaigns.


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

    def find(self, campaign_id: CampaignId) -> tuple[int, CampaignLease] | None:
        key = self._keys.get(campaign_id)
        return None if key is None else (key, self.leases[key])

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
        return changes

    def drop(self, key: int) -> None:
        lease = self.leases.pop(key)
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
            lease.terms = terms
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
