"""Ads for pages that run no script of ours: a page for frames, and an image with a link."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

import msgspec

from adloom.core.errors import NotFoundError
from adloom.core.public_paths import FRAMES, SCRIPT, name_neutrally
from adloom.events.ingest.api import PIXEL, build_redirect
from adloom.events.ingest.ivt.pages import PageCheck, PageOrigin
from adloom.runtime.http.fast.fast_routes import (
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    index_headers,
    make_problem_answer,
)
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.index.index import IndexedPlacement

PREFIX: Final = FRAMES.encode()
MOBILE: Final = "mobile"
# In a frame an overlay would cover nothing but itself.
OVERLAYS: Final = frozenset({"popup", "interstitial", "sticky_bar"})
IN_A_FRAME: Final = "full_static"

FRAME_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; "
    b"img-src * data:; media-src *; frame-src *; base-uri 'none'; frame-ancestors *"
)
FRAME_HEAD: Final = encode_head(
    HTTPStatus.OK,
    b"text/html; charset=utf-8",
    (b"cache-control", b"public, max-age=300"),
    (b"content-security-policy", FRAME_POLICY),
    (b"x-content-type-options", b"nosniff"),
)
NO_SUCH_FORM: Final = make_problem_answer(NotFoundError("A placement is served as .html, .img or .go."))


class EventRecorder(Protocol):
    """Records what became of an offer."""

    def record_impression(
        self, token: bytes, request: FastRequest, answer: FastAnswer, *, is_immediate: bool
    ) -> FastAnswer | asyncio.Future[FastAnswer]: ...

    def record_click(
        self, token: bytes, request: FastRequest, *, is_immediate: bool
    ) -> FastAnswer | asyncio.Future[FastAnswer]: ...


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    layout_type: str
    fallback_placeholder_url: str | None


class _Beginning(msgspec.Struct, frozen=True):
    placement: _Head


class _Images(msgspec.Struct, frozen=True, rename="camel"):
    primary_image_url: str
    mobile_image_url: str | None = None


_decode_beginning: Final = msgspec.json.Decoder(_Beginning).decode
_decode_images: Final = msgspec.json.Decoder(_Images).decode


class ScriptlessRoutes:
    """Serves a placement as a page, as an image and as the link around it."""

    def __init__(
        self, offers: ServeRoutes, events: EventRecorder, pages: PageCheck, *, prefix: str = ""
    ) -> None:
        # Relative, for frames behind a proxy that adds a path of its own.
        script = name_neutrally(SCRIPT, prefix)
        self._scripts = {PREFIX: f"..{script}"}
        if prefix:
            self._scripts[name_neutrally(FRAMES, prefix).encode()] = f"..{script[len(prefix) :]}"
        self._offers = offers
        self._events = events
        self._pages = pages
        self._forms: dict[bytes, Callable[[FastRequest, bytes], FastAnswer | asyncio.Future[FastAnswer]]] = {
            b"html": self.answer_frame,
            b"img": self.answer_image,
            b"go": self.answer_link,
        }

    def list_routes(self) -> list[FastRoute]:
        return [FastRoute(b"GET", path, is_prefix=True, handler=self.answer) for path in self._scripts]

    def answer(self, request: FastRequest) -> FastAnswer | asyncio.Future[FastAnswer]:
        slug, _, form = request.path[len(self._find_folder(request)) :].rpartition(b".")
        answers = self._forms.get(form)
        return NO_SUCH_FORM if answers is None else answers(request, slug)

    def _find_folder(self, request: FastRequest) -> bytes:
        return next(path for path in self._scripts if request.path.startswith(path))

    def answer_frame(self, request: FastRequest, slug: bytes) -> FastAnswer:
        """Return a page with nothing but the placement; the tag fills it."""
        chosen = self._offers.choose_one(request, slug, is_shown=False)
        if isinstance(chosen, FastAnswer):
            return chosen
        layout = _decode_head(chosen.placement).layout_type
        script = self._scripts[self._find_folder(request)]
        return FastAnswer(
            FRAME_HEAD, _build_frame(slug.decode(), IN_A_FRAME if layout in OVERLAYS else layout, script)
        )

    def answer_image(self, request: FastRequest, slug: bytes) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Redirect to the image of the chosen ad. As with a pixel, fetching it is an impression.

        Anybody can put the image anywhere, so it costs something only on pages of the placement's site.
        """
        chosen = self._offers.choose_one(
            request, slug, is_shown=request.method != b"HEAD", is_billed=self._is_on_site
        )
        if isinstance(chosen, FastAnswer):
            return chosen
        if chosen.offer is None:
            instead = _decode_head(chosen.placement).fallback_placeholder_url
            return PIXEL if instead is None else build_redirect(instead)
        images = _decode_images(b"{%b}" % chosen.offer.candidate.creative)
        is_small = chosen.device == MOBILE and images.mobile_image_url
        address = images.mobile_image_url if is_small else images.primary_image_url
        answer = build_redirect(address or images.primary_image_url)
        return self._events.record_impression(chosen.token, request, answer, is_immediate=True)

    def _is_on_site(self, request: FastRequest, placement: IndexedPlacement) -> bool:
        if placement.site is None:
            return False
        values = request.first_values or index_headers(request.headers)
        return self._pages.judge(placement.site, values) is PageOrigin.OF_SITE

    def answer_link(self, request: FastRequest, slug: bytes) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Count a click on the ad chosen for the same visitor, and redirect to its destination.

        Nothing ties a click to the image that was shown, so it is an offer of its own, free of charge.
        """
        chosen = self._offers.choose_one(request, slug, is_shown=False)
        if isinstance(chosen, FastAnswer):
            return chosen
        if chosen.offer is None:
            return make_problem_answer(NotFoundError("There is no ad here just now."))
        return self._events.record_click(chosen.token, request, is_immediate=True)


def _decode_head(placement: IndexedPlacement) -> _Head:
    return _decode_beginning(placement.head + b"]}").placement


def _build_frame(slug: str, layout: str, script: str) -> bytes:
    # Slugs have letters, digits and hyphens only, and layouts are an enum: nothing needs to be escaped.
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>Advertisement</title>
<style>html, body {{ margin: 0; height: 100%; }} div {{ width: 100%; height: 100%; }}</style>
<script async src="{script}"></script></head>
<body><div data-adloom="{slug}" data-layout="{layout}"></div></body></html>
""".encode()
