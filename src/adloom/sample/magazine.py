"""Makes the magazine a verified site whose articles are known and whose ads are approved, and has it crawled."""

import time
from http import HTTPStatus
from typing import Final

import msgspec

from adloom.sample.admin import AdminClient, RefusedError
from adloom.sample.content.articles import ARTICLES
from adloom.sample.content.catalog import CAMPAIGNS, MAGAZINE, SITE_BY_KEY
from adloom.sample.manifest import Manifest
from adloom.sample.pages.pages import list_sample_pages

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
