"""The catalogs of the bench: every campaign can be leased."""

from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import compile_index
from adloom.serving.leases.local_leases import LocalLeases
from bench.catalog import build_auction_catalog, lease_all


def test_campaigns_with_an_impression_cap_are_leased_too() -> None:
    index, leases = compile_index(build_auction_catalog(20)), LocalLeases(1)

    lease_all(PlacementStates(), leases, index)

    capped = [lease for lease in leases.registry.leases.values() if lease.terms.is_capped]
    assert capped
    assert leases.registry.list_excluded() == {}
