"""Removes the sample over the admin API, and nothing else."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from adloom.sample.admin import AdminClient, RefusedError
from adloom.sample.content.catalog import OUTSIDE_PATHS, SELLER
from adloom.sample.manifest import Manifest, State
from adloom.sample.removal import GOING, OF_A_CAMPAIGN, Stays, UsedBy, plan_removal

PAGE_SIZE: Final = 100
EXPORTED: Final = (*GOING, *OF_A_CAMPAIGN)

Keep = Callable[[Manifest], None]


class Removed(msgspec.Struct, frozen=True):
    """The result: what is left of the sample, what stays and why, and how many items were deleted."""

    manifest: Manifest
    stays: list[Stays]
    count: int


def remove_sample(admin: AdminClient, manifest: Manifest, *, keep: Keep) -> Removed:
    """Delete what the sample has created, except what other items use. Repeating it is harmless."""
    # The simulated visitors stop first: they read this state.
    manifest = manifest.in_state(State.REMOVING)
    keep(manifest)
    stays: list[Stays] = []
    went = 0
    for kind in reversed(OUTSIDE_PATHS):
        for key, made_id in reversed(manifest.ids_of(kind).items()):
            seller = manifest.ids_of("advertisers").get(SELLER, "")
            try:
                went += admin.delete(f"{OUTSIDE_PATHS[kind]}/{made_id}?sellerId={seller}")
            except RefusedError as error:
                stays.append(Stays(kind, key, key, UsedBy("advertisers", str(error))))
                continue
            manifest = manifest.without(kind, key)
    document: dict[str, Any] = admin.read("/admin/export")
    lists: dict[str, list[dict[str, Any]]] = {kind: document[kind] for kind in EXPORTED}
    plan = plan_removal(manifest, lists, _used_abroad(admin, manifest))
    for kind, key, made_id in plan.goes:
        went += admin.delete(f"{GOING[kind]}/{made_id}")
        manifest = manifest.without(kind, key)
    for key in manifest.ids_of("targetingRules"):
        manifest = manifest.without("targetingRules", key)
    manifest = manifest.in_state(State.REMOVED)
    return Removed(manifest, [*stays, *plan.stays], went)


def _used_abroad(admin: AdminClient, manifest: Manifest) -> Mapping[str, UsedBy]:
    """Return the advertisers that have ad accounts or sell pages which are not the sample's, or which stay."""
    used: dict[str, UsedBy] = {}
    for seller in manifest.ids_of("advertisers").values():
        for kind in ("adAccounts", "sellPages"):
            try:
                page = admin.read(f"{OUTSIDE_PATHS[kind]}?sellerId={seller}&pageSize={PAGE_SIZE}")
            except RefusedError:
                break  # The advertiser is gone already.
            for item in page["items"]:
                used[seller] = UsedBy(kind, str(item["name"]))
    return used
