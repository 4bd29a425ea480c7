"""Makes preview links over HTTP."""

from datetime import datetime
from typing import Annotated, Final
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import Request
from pydantic import Field

from adloom.catalog.preview.store import PreviewedAd, read_previewed
from adloom.catalog.preview.token import PREVIEW_LIFETIME, PREVIEW_PARAMETER, PreviewGrant, PreviewKeys
from adloom.core.errors import UnavailableError
from adloom.core.public_paths import FRAMES, name_neutrally
from adloom.core.query_string import add_parameters
from adloom.resource.api import CurrentCatalog, make_catalog_router
from adloom.runtime.http.api.dependencies import CurrentCaller, Now
from adloom.runtime.http.api.shapes import Answer, Body, WebAddress

RETRY_SECONDS: Final = 3_600  # Until somebody has changed the settings.

router = make_catalog_router("/admin/banners/{banner_id}/preview-link", tag="banners")


class PreviewLinkBody(Body):
    """Where to show the banner."""

    placement_id: UUID
    url: Annotated[
        WebAddress | None,
        Field(
            description="A page with the placement. Without it: the front page of the placement's site, or a page with nothing but the placement."
        ),
    ] = None


class PreviewLinkAnswer(Answer):
    """A link that shows the banner on the page, to whoever opens it. Nothing of it is counted or paid."""

    url: str
    placement_slug: str
    expires_at: datetime


@router.post("")
async def make_preview_link(  # noqa: PLR0913, PLR0917 - all that the route depends on
    banner_id: UUID,
    body: PreviewLinkBody,
    request: Request,
    caller: CurrentCaller,
    catalog: CurrentCatalog,
    now: Now,
) -> PreviewLinkAnswer:
    """Make a link that shows a banner on a real page for 24 hours, whether or not its campaign runs."""
    keys: PreviewKeys | None = request.app.state.preview_keys
    if keys is None:
        raise UnavailableError(
            "Preview links are off: start control with the ADLOOM_TOKEN_SECRET of delivery.",
            retry_after_seconds=RETRY_SECONDS,
        )
    async with catalog.read() as connection:
        ad = await read_previewed(connection, banner_id, body.placement_id, caller.account_id)
    grant = PreviewGrant(
        banner_id=ad.banner_id,
        placement_id=ad.placement_id,
        account_id=caller.account_id,
        expires_at=(now + PREVIEW_LIFETIME).replace(microsecond=0),
    )
    page_url = str(body.url) if body.url is not None else _choose_page(ad, request)
    return PreviewLinkAnswer(
        url=_add_token(page_url, keys.sign(grant)),
        placement_slug=ad.slug,
        expires_at=grant.expires_at,
    )


def _choose_page(ad: PreviewedAd, request: Request) -> str:
    if ad.site is not None:
        return f"https://{ad.site}/"
    prefix: str = request.app.state.public_prefix
    return f"{request.app.state.delivery_url}{name_neutrally(f'{FRAMES}{ad.slug}.html', prefix)}"


def _add_token(page_url: str, token: str) -> str:
    """Add the token to an address, before its fragment, instead of an older one."""
    parts = urlsplit(page_url)
    kept = [one for one in parts.query.split("&") if one and one.partition("=")[0] != PREVIEW_PARAMETER]
    return add_parameters(parts._replace(query="&".join(kept)).geturl(), {PREVIEW_PARAMETER: token})
