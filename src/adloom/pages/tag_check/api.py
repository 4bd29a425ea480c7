"""The check "is my tag there?" over HTTP: looks at a page of a placement's site."""

import asyncio
import contextlib
from html.parser import HTMLParser
from typing import Annotated, Final
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
from fastapi import Request
from pydantic import Field

from adloom.catalog.placement import placements
from adloom.catalog.site import sites
from adloom.core.errors import make_field_error
from adloom.core.public_paths import SCRIPT, name_neutrally
from adloom.pages.url import is_host_of, normalize_url
from adloom.pages.verification.api import Outbound, limit_checks
from adloom.resource.access import EVERYTHING
from adloom.resource.api import CurrentCatalog, PublisherWrites, make_catalog_router
from adloom.runtime.http.api.dependencies import CurrentValkey
from adloom.runtime.http.api.shapes import Answer, Body, Text
from adloom.runtime.outbound.client import BodyLimit
from adloom.runtime.outbound.failure import OutboundError

SLUGS_NAMED_MAX: Final = 10
PAGE_BYTES_MAX: Final = 2**20
OK: Final = 200


class TagLook(msgspec.Struct, frozen=True):
    """What a page has of the tag."""

    has_script: bool
    slugs: tuple[str, ...]


class _TagParser(HTMLParser):
    def __init__(self, script_path: str) -> None:
        super().__init__()
        self._script_path = script_path
        self.has_script = False
        self.slugs: dict[str, None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "script" and (values.get("src") or "").partition("?")[0].endswith(self._script_path):
            self.has_script = True
        if slug := values.get("data-adloom"):
            self.slugs[slug.strip()] = None


def look_for_tag(page: str, script_url: str) -> TagLook:
    """Return what a page has of the tag; the script may come from any host, since proxies rename ours."""
    parser = _TagParser(urlsplit(script_url).path)
    # What the parser cannot go on from: all before it was looked at.
    with contextlib.suppress(AssertionError):
        parser.feed(page)
    return TagLook(parser.has_script, tuple(parser.slugs))


def find_fault(look: TagLook, slug: str, script_url: str) -> str | None:
    """Say what is wrong, or return None where the tag of a placement is complete."""
    if not look.has_script and not look.slugs:
        return (
            "The page has nothing of the tag: paste both lines. "
            "Where script in the browser puts them there, this check cannot see them."
        )
    if not look.has_script:
        return f'The page has places for ads, but no script: add <script async src="{script_url}"></script>.'
    if slug not in look.slugs:
        others = ", ".join(look.slugs[:SLUGS_NAMED_MAX])
        has = f"; it has {others}" if others else ""
        return f'The script is there, but no element has data-adloom="{slug}"{has}.'
    return None


class TagCheckBody(Body):
    """Where to look."""

    url: Annotated[Text, Field(min_length=1, max_length=8_192, description="A page of the placement's site.")]


class TagCheckAnswer(Answer):
    """What was found. A page that puts the tag there by script cannot be looked into."""

    url: Annotated[str, Field(description="After redirects.")]
    is_there: bool
    message: str
    slugs: Annotated[list[str], Field(description="The placements that the page has.")]


router = make_catalog_router("/admin/placements/{placement_id}/tag-check", tag="placements")


@router.post("")
async def check_tag(  # noqa: PLR0913, PLR0917 - all that the route depends on
    placement_id: UUID,
    body: TagCheckBody,
    request: Request,
    scope: PublisherWrites,
    catalog: CurrentCatalog,
    client: Outbound,
    valkey: CurrentValkey,
) -> TagCheckAnswer:
    """Look at a page of the placement's site, and say whether the tag is there."""
    async with catalog.read() as connection:
        placement = await placements.table.find(connection, scope, placement_id)
        site = None
        if placement.site_id is not None:
            site = await sites.table.find(connection, EVERYTHING, placement.site_id)
    if site is None:
        raise make_field_error(
            "url", "cannot be checked: give the placement a site first", "The placement has no site."
        )
    url = normalize_url(body.url)
    if url is None or not is_host_of(url.host, site.domain):
        message = f"must be the address of a page of {site.domain}, such as https://{site.domain}/"
        raise make_field_error("url", message, f"`url` {message}.")
    await limit_checks(valkey, site.id)
    if scope.account_id is not None:
        await limit_checks(valkey, scope.account_id)

    def may_follow(address: str) -> str | None:
        host = urlsplit(address).hostname or ""
        return None if is_host_of(host, site.domain) else f"it leads away from {site.domain}"

    script_url = f"{request.app.state.delivery_url}{name_neutrally(SCRIPT, request.app.state.public_prefix)}"
    try:
        found = await client.get(
            body.url,
            headers={"accept": "text/html"},
            limit=BodyLimit(bytes_max=PAGE_BYTES_MAX, is_cut_taken=True),
            may_follow=may_follow,
        )
    except OutboundError as error:
        return TagCheckAnswer(url=body.url, is_there=False, message=str(error), slugs=[])
    if found.status != OK:
        message = f"The page answers {found.status}."
        return TagCheckAnswer(url=found.url, is_there=False, message=message, slugs=[])
    # Parsing takes seconds for the largest pages.
    look = await asyncio.to_thread(look_for_tag, found.body.decode("utf-8", "replace"), script_url)
    fault = find_fault(look, placement.slug, script_url)
    return TagCheckAnswer(
        url=found.url,
        is_there=fault is None,
        message=fault or "The tag is there: the script, and the place of this placement.",
        slugs=list(look.slugs),
    )
