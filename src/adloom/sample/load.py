"""Loads the sample into an installation over the admin API, like any other program would, and removes it again.

The magazine becomes a verified site whose articles are known and whose ads are approved, and is crawled.
"""

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

import msgspec

from adloom.sample.admin import AdminClient, RefusedError
from adloom.sample.content.articles import ARTICLES
from adloom.sample.content.catalog import (
    CAMPAIGNS,
    MAGAZINE,
    OUTSIDE,
    OUTSIDE_PATHS,
    SELLER,
    SITE_BY_KEY,
    OutsideItem,
)
from adloom.sample.content.document import build_document, choose_ids, list_pictures
from adloom.sample.content.pictures import FOLDER
from adloom.sample.manifest import Manifest, State
from adloom.sample.pages.pages import list_sample_pages
from adloom.sample.removal import GOING, OF_A_CAMPAIGN, Stays, UsedBy, plan_removal

# How far back the mock platform is asked for statistics.
DAYS_ABROAD: Final = 30

Keep = Callable[[Manifest], None]
PAGE_SIZE: Final = 100
EXPORTED: Final = (*GOING, *OF_A_CAMPAIGN)


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
    document = build_document(ids, delivery_url=delivery_url, now=now, uploaded=_upload_pictures(admin))
    admin.send("POST", "/admin/import", dict(document))
    for campaign in CAMPAIGNS:
        if campaign.is_deleted:
            admin.delete(f"/admin/campaigns/{ids['campaigns'][campaign.key]}")
    manifest = _load_abroad(admin, manifest, keep=keep, now=now)
    manifest = manifest.with_state(State.THERE)
    keep(manifest)
    return manifest


def _upload_pictures(admin: AdminClient) -> dict[str, str]:
    """Upload the pictures of banners, as people do theirs; return their addresses by path."""
    return {
        picture.path: admin.upload(picture.render_svg().encode(), name=picture.path.removeprefix(FOLDER))
        for picture in list_pictures()
    }


def _load_abroad(admin: AdminClient, manifest: Manifest, *, keep: Keep, now: datetime) -> Manifest:
    """Create the items of stats sync, and sync the last weeks."""
    seller = manifest.get_ids("advertisers")[SELLER]
    for thing in OUTSIDE:
        if thing.key not in manifest.get_ids(thing.kind):
            made_id = admin.make(
                OUTSIDE_PATHS[thing.kind], {"sellerId": seller, **_list_fields(thing, manifest)}
            )
            manifest = manifest.with_thing(thing.kind, thing.key, made_id)
            keep(manifest)
    first, last = (now - timedelta(days=DAYS_ABROAD)).date(), now.date()
    days = {"sellerId": seller, "dateFrom": first.isoformat(), "dateTo": last.isoformat()}
    admin.send("POST", "/api/ads-manager/sync", days)
    return manifest


def _list_fields(thing: OutsideItem, manifest: Manifest) -> dict[str, object]:
    named = {**thing.parents, **thing.own}
    references = {field: manifest.get_ids(kind)[key] for field, (kind, key) in named.items()}
    return {"name": thing.name, **thing.fields, **references}


class Removed(msgspec.Struct, frozen=True):
    """The result: what is left of the sample, what stays and why, and how many items were deleted."""

    manifest: Manifest
    stays: list[Stays]
    count: int


def remove_sample(admin: AdminClient, manifest: Manifest, *, keep: Keep) -> Removed:
    """Delete what the sample has created, except what other items use. Repeating it is harmless."""
    # The simulated visitors stop first: they read this state.
    manifest = manifest.with_state(State.REMOVING)
    keep(manifest)
    stays: list[Stays] = []
    went = 0
    for kind in reversed(OUTSIDE_PATHS):
        for key, made_id in reversed(manifest.get_ids(kind).items()):
            seller = manifest.get_ids("advertisers").get(SELLER, "")
            try:
                went += admin.delete(f"{OUTSIDE_PATHS[kind]}/{made_id}?sellerId={seller}")
            except RefusedError as error:
                stays.append(Stays(kind, key, key, UsedBy("", str(error))))
                continue
            manifest = manifest.without(kind, key)
    document: dict[str, Any] = admin.read("/admin/export")
    lists: dict[str, list[dict[str, Any]]] = {kind: document[kind] for kind in EXPORTED}
    plan = plan_removal(manifest, lists, _find_used_abroad(admin, manifest))
    for kind, key, made_id in plan.goes:
        went += admin.delete(f"{GOING[kind]}/{made_id}")
        manifest = manifest.without(kind, key)
    for key in manifest.get_ids("targetingRules"):
        manifest = manifest.without("targetingRules", key)
    manifest = manifest.with_state(State.REMOVED)
    return Removed(manifest, [*stays, *plan.stays], went)


def _find_used_abroad(admin: AdminClient, manifest: Manifest) -> Mapping[str, UsedBy]:
    """Return the advertisers that have ad accounts or sell pages which are not the sample's, or which stay."""
    used: dict[str, UsedBy] = {}
    for seller in manifest.get_ids("advertisers").values():
        for kind in ("adAccounts", "sellPages"):
            try:
                page = admin.read(f"{OUTSIDE_PATHS[kind]}?sellerId={seller}&pageSize={PAGE_SIZE}")
            except RefusedError:
                break  # The advertiser is gone already.
            for item in page["items"]:
                used[seller] = UsedBy(kind, str(item["name"]))
    return used


POLL_SECONDS: Final = 0.25
POLLS_MAX: Final = 60  # The first auctions take a second or two.


def give_pages(admin: AdminClient, manifest: Manifest) -> None:
    """Say what each article is about, begin a crawl, approve ads, and verify the site. It is not repeated."""
    path = f"/admin/sites/{manifest.get_ids('sites').get(MAGAZINE)}"
    if not _is_waiting(admin, path):
        return
    for article in ARTICLES:
        url = list_sample_pages()[article.path].address
        categories = msgspec.to_builtins(article.categories)
        admin.send("POST", f"{path}/pages", {"url": url, "title": article.title, "categories": categories})
    _begin_crawl(admin, path)
    _approve(admin, path, manifest)
    # Last, because it says that all of this is done. No file can prove a domain that does not exist.
    admin.send("POST", f"{path}/verify", {"force": True})


def _approve(admin: AdminClient, path: str, manifest: Manifest) -> None:
    """Approve the ads of all but one advertiser, as soon as the auctions of the articles have found them."""
    ids = manifest.get_ids("banners")
    campaigns = [one for one in CAMPAIGNS if not one.is_pending]
    missing = {ids[key] for campaign in campaigns for key in campaign.creatives}
    for _ in range(POLLS_MAX):
        pending = admin.read(f"{path}/approvals?state=pending&pageSize=100")["items"]
        found = missing & {str(one["bannerId"]) for one in pending}
        if found:
            admin.send("POST", f"{path}/approvals", {"decision": "approve", "bannerIds": sorted(found)})
            missing -= found
        if not missing:
            return
        time.sleep(POLL_SECONDS)


def _is_waiting(admin: AdminClient, path: str) -> bool:
    """Whether the site is there, is still the magazine, and nothing of this was done."""
    try:
        site = admin.read(path)
    except RefusedError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return False
        raise
    return site["domain"] == SITE_BY_KEY[MAGAZINE].domain and site["verifiedAt"] is None


def _begin_crawl(admin: AdminClient, path: str) -> None:
    try:
        admin.send("POST", f"{path}/crawl")
    except RefusedError as error:
        if error.status != HTTPStatus.CONFLICT:  # It runs already.
            raise
