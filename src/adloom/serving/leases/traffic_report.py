"""What a report says of the traffic: how many requests a campaign could have bid on, and on which site it runs."""

# pure

from collections.abc import Iterable, Mapping

import msgspec

from adloom.budgets.messages import LeaseUsage
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.rows import LeaseTerms
from adloom.serving.leases.registry import LeaseRegistry


class TrafficReport:
    """Adds the traffic to the reports of leases."""

    def __init__(self, registry: LeaseRegistry, states: PlacementStates) -> None:
        self._registry = registry
        self._states = states
        self.site_keys: Mapping[int, int | None] = {}  # By placement.

    def add_to(self, terms: LeaseTerms, usage: LeaseUsage) -> LeaseUsage:
        """Add how many requests the campaign could have bid on, and the site where it runs on one only.

        Its budget then follows that site's traffic.
        """
        found = self._registry.find(terms.campaign_id)
        if found is None or found[1].reported_traffic == usage.report_key:
            return usage  # Sent before.
        lease = found[1]
        lease.reported_traffic = usage.report_key
        sites = {
            self.site_keys.get(key) if key > 0 else self._states.find_site(key) for key in lease.placements
        }
        seen, lease.requests_seen = lease.requests_seen, self._count_requests(lease.placements)
        usage = msgspec.structs.replace(
            usage,
            site_key=sites.pop() if len(sites) == 1 else None,
            opportunities=max(0, lease.requests_seen - seen),
        )
        if lease.pending is not None and lease.pending.report_key == usage.report_key:
            lease.pending = usage
        return usage

    def _count_requests(self, placement_keys: Iterable[int]) -> int:
        """Count requests of contextual slots, and of the placement most asked for: its market has the others too."""
        count = self._states.count_requests
        contextual, placed = 0, 0
        for key in placement_keys:
            if key < 0:
                contextual += count(key)
            else:
                placed = max(placed, count(key))
        return contextual + placed
