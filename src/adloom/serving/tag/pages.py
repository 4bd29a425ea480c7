"""Ads for pages that run no script of ours: a page for frames, and an image with a link."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

import msgspec

from adloom.core.errors import NotFoundError
from adloom.events.ingest.api import PIXEL, build_redirect
from adloom.runtime.http.fast.fast_routes import (
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    problem_answer,
)
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.index.index import IndexedPlacement

PREFIX: Final = b"/serve/"
MOBILE: Final = "mobile"
# What lies over a page of its own would hide nothing but itself in a frame.
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
NO_SUCH_FORM: Final = problem_answer(NotFoundError("A placement is served as .html, .img or .go."))


class EventRecorder(Protocol):
    """Records what became of an offer."""

    def record_impression(self, request: FastRequest, slug: bytes, *, is_shown: bool) -> ChosenOffer | FastAnswer:
        """Choose, or refuse."""
        ...


class Counts(Protocol):
    """Counts what became of an offer."""

    def seen(
        self, token: bytes, request: FastRequest, answer: FastAnswer
    ) -> FastAnswer | asyncio.Future[FastAnswer]: ...

    def record_click(self, token: bytes, request: FastRequest) -> FastAnswer | asyncio.Future[FastAnswer]: ...


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

    def __init__(self, offers: ServeRoutes, events: EventRecorder) -> None:
        self._offers = offers
        self._events = events
        self._forms: dict[bytes, Callable[[FastRequest, bytes], FastAnswer | asyncio.Future[FastAnswer]]] = {
            b"html": self.frame,
            b"img": self.image,
            b"go": self.link,
        }

    def routes(self) -> list[FastRoute]:
        """List what this answers."""
        return [FastRoute(b"GET", PREFIX, is_prefix=True, handler=self.answer)]

    def answer(self, request: FastRequest) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Answer `GET /serve/{slug}.{form}`."""
        slug, _, form = request.path[len(PREFIX) :].rpartition(b".")
        answers = self._forms.get(form)
        return NO_SUCH_FORM if answers is None else answers(request, slug)

    def frame(self, request: FastRequest, slug: bytes) -> FastAnswer:
        """Give a page that has the placement in it and nothing else; the tag fills it."""
        chosen = self._offers.choose_one(request, slug, is_shown=False)
        if isinstance(chosen, FastAnswer):
            return chosen
        layout = _head_of(chosen.placement).layout_type
        return FastAnswer(
            FRAME_HEAD, _frame_page(slug.decode(), IN_A_FRAME if layout in OVERLAYS else layout)
        )

    def image(self, request: FastRequest, slug: bytes) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Lead on to the image of the ad that is chosen; whoever fetches it has seen it, as with a pixel."""
        chosen = self._offers.choose_one(request, slug, is_shown=request.method != b"HEAD")
        if isinstance(chosen, FastAnswer):
            return chosen
        if chosen.offer is None:
            instead = _head_of(chosen.placement).fallback_placeholder_url
            return PIXEL if instead is None else build_redirect(instead)
        images = _decode_images(b"{%b}" % chosen.offer.candidate.creative)
        is_small = chosen.device == MOBILE and images.mobile_image_url
        address = images.mobile_image_url if is_small else images.primary_image_url
        return self._events.record_impression(
            chosen.token, request, build_redirect(address or images.primary_image_url)
        )

    def link(self, request: FastRequest, slug: bytes) -> FastAnswer | asyncio.Future[FastAnswer]:
        """Count a click on the ad that is chosen for the same reader, and lead on to where it leads.

        Nothing ties a click to the image that was there, so it is an offer of its own, which costs nobody
        anything.
        """
        chosen = self._offers.choose_one(request, slug, is_shown=False)
        if isinstance(chosen, FastAnswer):
            return chosen
        if chosen.offer is None:
            return problem_answer(NotFoundError("There is no ad here just now."))
        return self._events.record_click(chosen.token, request)


def _head_of(placement: IndexedPlacement) -> _Head:
    return _decode_beginning(placement.head + b"]}").placement


def _frame_page(slug: str, layout: str) -> bytes:
    # Slugs have letters, digits and hyphens only, and layouts are a list: nothing here needs to be escaped.
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>Advertisement</title>
<style>html, body {{ margin: 0; height: 100%; }} div {{ width: 100%; height: 100%; }}</style>
<script async src="../tag.js"></script></head>
<body><div data-adloom="{slug}" data-layout="{layout}"></div></body></html>
""".encode()
