"""Loads the sample into an installation over the admin API, like any other program would."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from adloom.sample.admin import AdminClient
from adloom.sample.content.catalog import CAMPAIGNS, OUTSIDE, OUTSIDE_PATHS, SELLER, OutsideItem
from adloom.sample.content.document import build_document, choose_ids
from adloom.sample.manifest import Manifest, State

# How far back the mock platform is asked for statistics.
DAYS_ABROAD: Final = 30

Keep = Callable[[Manifest], None]


def load_sample(  # noqa: PLR0913 - all that a load needs from outside
    admin: AdminClient,
    before: Manifest | None,
    *,
    keep: Keep,
    new_id: Callable[[], str],
    delivery_url: str,
    now: datetime,
) -> Manifest:
    """Create everything. The manifest is written first, so that a load that breaks off can be undone."""
    kept = {} if before is None else before.things
    ids = choose_ids(new_id, kept)
    manifest = Manifest(state=State.LOADING, loaded_at=now, things={**kept, **ids})
    keep(manifest)
    admin.send("POST", "/admin/import", dict(build_document(ids, delivery_url=delivery_url, now=now)))
    for campaign in CAMPAIGNS:
        if campaign.is_deleted:
            admin.delete(f"/admin/campaigns/{ids['campaigns'][campaign.key]}")
    manifest = _load_abroad(admin, manifest, keep=keep, now=now)
    manifest = manifest.in_state(State.THERE)
    keep(manifest)
    return manifest


def _load_abroad(admin: AdminClient, manifest: Manifest, *, keep: Keep, now: datetime) -> Manifest:
    """Create the items of stats sync, and sync the last weeks."""
    seller = manifest.ids_of("advertisers")[SELLER]
    for thing in OUTSIDE:
        if thing.key not in manifest.ids_of(thing.kind):
            made_id = admin.make(OUTSIDE_PATHS[thing.kind], {"sellerId": seller, **_fields(thing, manifest)})
            manifest = manifest.with_thing(thing.kind, thing.key, made_id)
            keep(manifest)
    first, last = (now - timedelta(days=DAYS_ABROAD)).date(), now.date()
    days = {"sellerId": seller, "dateFrom": first.isoformat(), "dateTo": last.isoformat()}
    admin.send("POST", "/api/ads-manager/sync", days)
    return manifest


def _fields(thing: OutsideItem, manifest: Manifest) -> dict[str, object]:
    named = {**thing.parents, **thing.own}
    references = {field: manifest.ids_of(kind)[key] for field, (kind, key) in named.items()}
    return {"name": thing.name, **thing.fields, **references}
