"""The pages of sites: list, form, and a site with its setup, its pages, its crawls and its placements."""

from typing import Final

from markupsafe import Markup

from adloom.console.client import Json
from adloom.console.components.layout import badge
from adloom.console.components.table import Column
from adloom.console.pages.placements import PLACEMENTS
from adloom.console.pages.sites.approvals import show_site_approvals
from adloom.console.pages.sites.crawls import show_crawls
from adloom.console.pages.sites.fields import add_site_fields
from adloom.console.pages.sites.market import show_market
from adloom.console.pages.sites.overview import new_slot_address, show_overview
from adloom.console.pages.sites.pacing import show_pacing
from adloom.console.pages.sites.site_pages import show_pages
from adloom.console.pages.sites.verification import verification_badge
from adloom.console.resource_pages import ResourcePages, Tab
from adloom.console.shell import PUBLISHER_SIDE


def _site_badge(site: Json) -> Markup:
    suspended = badge("Suspended", "bad") if site["isSuspended"] else Markup("")
    return verification_badge(site) + suspended


SITES: Final = ResourcePages(
    noun="site",
    icon="language",
    note="A domain whose pages have placements.",
    empty_note="A site is a domain. We read its pages and find out what they are about, so that ads fit them.",
    roles=PUBLISHER_SIDE,
    columns=[
        Column("Domain", "domain", sort="domain"),
        Column("Name", "name", sort="name"),
        Column("State", _site_badge),
        Column("Time zone", "timezone", is_wide_only=True),
    ],
    search="Search by domain or name",
    fields=add_site_fields,
    defaults={
        "timezone": "UTC",
        "cronSchedule": "0 2 * * *",
        "maxDepth": 2,
        "maxPages": 1_000,
        "crawlConcurrency": 5,
        "approvalMode": "manual",
        "floorCpm": 0.5,
        "minFloorCpm": 0.1,
        "floorMode": "fixed",
        "auctionMode": "second_price",
        "bidWeight": 0.5,
        "acceptsFiller": True,
        "isSuspended": False,
        "pacing": {"dayDurationSeconds": 86_400, "warmup": False},
    },
    defaults_from_query={"publisherId": "publisher"},
    badge=_site_badge,
    detail_note=lambda site: site["domain"],
    delete_note=(
        "What is known about its pages is lost. A site with contextual placements cannot be removed. Other placements "
        "stay and keep serving, but without a site: ads of advertisers that block this domain can then appear there. "
        "This cannot be undone."
    ),
    is_restorable=False,
    add=lambda site: ("New placement", new_slot_address(site)),
    tabs={
        "overview": Tab("Overview", show_overview),
        "pages": Tab("Pages", show_pages),
        "crawls": Tab("Crawls", show_crawls),
        "approvals": Tab("Approvals", show_site_approvals),
        "market": Tab("Market", show_market),
        "traffic": Tab("Traffic", show_pacing),
        "placements": PLACEMENTS.tab_of("siteId"),
    },
).register()
