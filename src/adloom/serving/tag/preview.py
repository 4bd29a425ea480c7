"""Shows one banner in one slot of a page, by a signed link, for whoever opens it. Nothing of it is counted or paid.

What it shows may be paused, pending or new, so it is read from the database and not from the index: only after the
token was verified, and one at a time.
"""

import asyncio
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Final

import msgspec

from adloom.catalog.banner_content import UTM
from adloom.catalog.preview.store import PreviewedAd, read_previewed
from adloom.catalog.preview.token import PreviewGrant, PreviewKeys
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.ids import IdSource
from adloom.core.query_string import add_parameters
from adloom.runtime.http.body import BodyDecoder
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoute, encode_head
from adloom.runtime.postgres import Pool, raise_if_away
from adloom.serving.direct.answer import AnsweredPlacement, ShownBanner

PREVIEW_PATH: Final = b"/v1/preview"
PENDING_MAX: Final = 20  # Beyond this, 503: who has a link tries again.
READ_SECONDS_MAX: Final = 5.0
LABEL: Final = "Preview"  # Instead of the page's own mark of ads.
PREVIEW_HEAD: Final = encode_head(
    HTTPStatus.OK,
    b"application/json",
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


class PreviewRequest(msgspec.Struct, frozen=True):
    """The token of a preview link."""

    token: Annotated[str, msgspec.Meta(max_length=200)]


class PreviewBanner(ShownBanner, kw_only=True, rename="camel"):
    """A banner without a token: nothing can be reported of it, and its link goes straight to its destination."""

    click_url: str | None
    label: str = LABEL


class PreviewSlot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What fills a slot of a page, in the form of direct delivery."""

    delivery: str = "preview"
    reason: str | None = None
    placement: AnsweredPlacement
    banners: list[PreviewBanner]
    expires_at: datetime
    request_id: str
    served_at: datetime


class PreviewAnswer(msgspec.Struct, frozen=True):
    """One slot by its slug."""

    slots: dict[str, PreviewSlot]


_bodies: Final = BodyDecoder(PreviewRequest)


class PreviewRoutes:
    """Answers `POST /v1/preview`, in the form of `POST /v1/serve/page`."""

    def __init__(self, pool: Pool, keys: PreviewKeys, clock: Clock, ids: IdSource) -> None:
        self._pool = pool
        self._keys = keys
        self._now = clock.now
        self._new_id = ids.make_opaque
        self._pending: set[asyncio.Future[FastAnswer]] = set()
        self._turn = asyncio.Lock()

    def list_routes(self) -> list[FastRoute]:
        return [FastRoute(b"POST", PREVIEW_PATH, is_prefix=False, handler=self.show)]

    def show(self, request: FastRequest) -> asyncio.Future[FastAnswer]:
        grant = self._keys.verify(_bodies.decode(request.body).token, now=self._now())
        if len(self._pending) >= PENDING_MAX:
            raise UnavailableError("Too many previews are opened at once. Try again.")
        showing = asyncio.ensure_future(self._show(grant))
        self._pending.add(showing)
        showing.add_done_callback(self._pending.discard)
        return showing

    async def _show(self, grant: PreviewGrant) -> FastAnswer:
        with raise_if_away("The preview cannot be read now. Try again."):
            async with asyncio.timeout(READ_SECONDS_MAX), self._turn, self._pool.acquire() as connection:
                ad = await read_previewed(connection, grant.banner_id, grant.placement_id, grant.account_id)
        slot = PreviewSlot(
            placement=AnsweredPlacement(
                id=ad.placement_id,
                slug=ad.slug,
                label=ad.label,
                layout_type=ad.layout_type,
                max_banners=ad.max_banners,
                fallback_placeholder_url=ad.placeholder_url,
            ),
            banners=[_build_banner(ad)],
            expires_at=grant.expires_at,
            request_id=str(self._new_id()),
            served_at=self._now(),
        )
        return FastAnswer(PREVIEW_HEAD, msgspec.json.encode(PreviewAnswer({ad.slug: slot})))


def _build_banner(ad: PreviewedAd) -> PreviewBanner:
    content = dict(ad.content)
    parameters = {name: content.pop(name) for name in UTM}
    if content["cta_url"] is not None:
        content["cta_url"] = add_parameters(content["cta_url"], parameters)
    return PreviewBanner(**content, id=ad.banner_id, click_url=content["cta_url"])
