"""Makes the magazine a verified site whose articles are known, and has it crawled in the background."""

from http import HTTPStatus

import msgspec

from adloom.sample.admin import AdminClient, RefusedError
from adloom.sample.content.articles import ARTICLES
from adloom.sample.content.catalog import MAGAZINE, SITE_BY_KEY
from adloom.sample.manifest import Manifest
from adloom.sample.pages.pages import sample_pages


def give_pages(admin: AdminClient, manifest: Manifest) -> None:
    """Say what each article is about, begin a crawl, and verify the site. What was done before is not repeated."""
    path = f"/admin/sites/{manifest.ids_of('sites').get(MAGAZINE)}"
    if not _is_waiting(admin, path):
        return
    for article in ARTICLES:
        url = sample_pages()[article.path].address
        categories = msgspec.to_builtins(article.categories)
        admin.send("POST", f"{path}/pages", {"url": url, "title": article.title, "categories": categories})
    _begin_crawl(admin, path)
    # Last, because it says that all of this is done. No file can prove a domain that does not exist.
    admin.send("POST", f"{path}/verify", {"force": True})


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
