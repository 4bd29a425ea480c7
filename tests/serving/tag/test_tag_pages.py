"""Placements on pages without the script: a page for frames, an image, and the link around it."""

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from adloom.core.clock import ManualClock
from adloom.core.ids import SystemIds
from adloom.core.money import Micros
from adloom.events.ingest.api import PIXEL
from adloom.events.ingest.ivt.pages import PageCheck
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import Caps, Delivery, OfferPrice, Snapshot
from adloom.serving.tag.pages import ScriptlessRoutes
from tests.serving.test_serve import leased
from tests.support.for_each import for_each
from tests.support.rows import a_snapshot, an_assignment_row

KEYS = TokenKeys("a secret of the tests, long enough to be one")
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
PHONE = b"Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148"
REDIRECTED = FastAnswer(b"redirected")
SITE, ON_SITE = "news.example", b"https://www.news.example/"
PAGES = PageCheck("https://ads.example")


class FakeEventRoutes:
    """Records the tokens of offers that were seen and clicked."""

    def __init__(self) -> None:
        self.seen_tokens: list[OfferToken] = []
        self.clicked_tokens: list[OfferToken] = []

    def record_impression(
        self, token: bytes, request: FastRequest, answer: FastAnswer, *, is_immediate: bool
    ) -> FastAnswer:
        assert is_immediate
        del request
        self.seen_tokens.append(verify(token))
        return answer

    def record_click(self, token: bytes, request: FastRequest, *, is_immediate: bool) -> FastAnswer:
        assert is_immediate
        del request
        self.clicked_tokens.append(verify(token))
        return REDIRECTED


def verify(token: bytes) -> OfferToken:
    offer = KEYS.verify(token, now=NOON)
    assert isinstance(offer, OfferToken)
    return offer


def ask(
    snapshot: Snapshot,
    path: str,
    events: FakeEventRoutes | None = None,
    method: bytes = b"GET",
    prefix: str = "",
    **headers: Any,
) -> FastAnswer:
    index = compile_index(snapshot)
    offers = ServeRoutes(lambda: index, KEYS.signer, ManualClock(NOON), SystemIds(), public_url="")
    routes = ScriptlessRoutes(offers, events or FakeEventRoutes(), PAGES, prefix=prefix)
    sent = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    answer = routes.answer(FastRequest(method, path.encode(), headers=sent))
    assert not isinstance(answer, asyncio.Future)
    return answer


def location(answer: FastAnswer) -> str | None:
    found = re.search(rb"location: (.*)\r\n", answer.head)
    return found and found[1].decode()


def test_the_page_for_frames_contains_the_placement_and_may_be_framed_by_any_site() -> None:
    events = FakeEventRoutes()

    answer = ask(a_snapshot(an_assignment_row()), "/serve/home.html", events)

    assert b'<div data-adloom="home" data-layout="full_slider"></div>' in answer.body
    assert b'src="../tag.js"' in answer.body
    assert b"frame-ancestors *\r\n" in answer.head
    assert events.seen_tokens == []


@pytest.mark.parametrize(
    ("path", "script"), [("/serve/home.html", "../x/a/loom.js"), ("/x/a/box/home.html", "../loom.js")]
)
def test_a_frame_loads_the_script_by_its_neutral_name(path: str, script: str) -> None:
    answer = ask(a_snapshot(an_assignment_row()), path, prefix="/x/a")

    assert f'src="{script}"'.encode() in answer.body


@pytest.mark.parametrize("layout", ["popup", "interstitial", "sticky_bar"])
def test_an_overlay_layout_is_static_in_a_frame(layout: str) -> None:
    answer = ask(a_snapshot(an_assignment_row(), layout_type=layout), "/serve/home.html")

    assert b'data-layout="full_static"' in answer.body


def test_the_image_redirects_to_that_of_the_ad_and_counts_an_impression() -> None:
    events = FakeEventRoutes()
    row = an_assignment_row(primary_image_url="https://cdn.example.com/a b.png")

    answer = ask(a_snapshot(row), "/serve/home.img", events)

    assert location(answer) == "https://cdn.example.com/a%20b.png"
    assert b"cache-control: no-store\r\n" in answer.head
    assert [one.banner_id for one in events.seen_tokens] == [row.banner_id]


def test_a_phone_gets_the_image_for_phones() -> None:
    row = an_assignment_row(mobile_image_url="https://cdn.example.com/small.png")

    answer = ask(a_snapshot(row), "/serve/home.img", user_agent=PHONE)

    assert location(answer) == "https://cdn.example.com/small.png"


def test_without_an_ad_the_image_is_the_placeholder_or_a_transparent_pixel() -> None:
    placeholder = "https://cdn.example.com/nothing.png"

    assert location(ask(a_snapshot(fallback_placeholder_url=placeholder), "/serve/home.img")) == placeholder
    assert ask(a_snapshot(), "/serve/home.img") is PIXEL


def test_the_link_counts_a_click_without_a_charge() -> None:
    events = FakeEventRoutes()
    row = an_assignment_row(price=OfferPrice(Micros(5_000)))
    snapshot = a_snapshot(row, site=SITE)

    assert ask(snapshot, "/serve/home.go", events, referer=ON_SITE) is REDIRECTED
    ask(snapshot, "/serve/home.img", events, referer=ON_SITE)

    assert [(one.banner_id, one.charge) for one in events.clicked_tokens] == [(row.banner_id, 0)]
    assert [one.charge for one in events.seen_tokens] == [5_000]


@for_each(
    ("site", "referer", "is_billed"),
    [
        (SITE, b"https://www.news.example/", True),
        (SITE, b"https://forum.example/thread", False),
        (SITE, b"https://news.example.forum.example/", False),
        (SITE, b"", False),
        (SITE, None, False),
        (None, b"https://www.news.example/", False),
        (SITE, b"http://127.0.0.1:8080/sample", True),
        (SITE, b"https://ads.example/sample", True),
    ],
)
def test_an_image_is_billed_only_on_pages_of_its_site(
    site: str | None,
    referer: bytes | None,
    is_billed: bool,  # noqa: FBT001 - a case
) -> None:
    events = FakeEventRoutes()
    row = an_assignment_row(price=OfferPrice(Micros(5_000)))
    headers: dict[str, Any] = {} if referer is None else {"referer": referer}

    answer = ask(a_snapshot(row, site=site), "/serve/home.img", events, **headers)

    assert location(answer) == row.primary_image_url, "it is shown anywhere"
    assert [(one.charge, one.is_void) for one in events.seen_tokens] == [
        (5_000, False) if is_billed else (0, True)
    ]


def test_an_image_that_costs_nothing_counts_anywhere() -> None:
    events = FakeEventRoutes()

    ask(a_snapshot(an_assignment_row()), "/serve/home.img", events)

    assert [one.is_void for one in events.seen_tokens] == [False]


def test_a_head_request_holds_nothing() -> None:
    events = FakeEventRoutes()
    row = an_assignment_row(price=OfferPrice(Micros(5_000)))

    ask(a_snapshot(row), "/serve/home.img", events, b"HEAD")

    assert [one.charge for one in events.seen_tokens] == [0]


def test_an_image_counts_against_the_cap_of_its_campaign_and_a_link_does_not() -> None:
    snapshot = a_snapshot(an_assignment_row(campaign_key=7, caps=Caps(1, None)), site=SITE)
    leases = leased(snapshot, impressions=1)
    index = compile_index(snapshot)
    offers = ServeRoutes(
        lambda: index, KEYS.signer, ManualClock(NOON), SystemIds(), public_url="", leases=leases
    )
    routes = ScriptlessRoutes(offers, FakeEventRoutes(), PAGES)

    def is_shown(form: bytes) -> bool:
        headers = [(b"referer", ON_SITE)]
        answer = routes.answer(FastRequest(b"GET", b"/serve/home." + form, headers=headers))
        return answer is REDIRECTED or (isinstance(answer, FastAnswer) and location(answer) is not None)

    assert [is_shown(form) for form in (b"go", b"go", b"img", b"img", b"go")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("form", ["html", "img", "go"])
@pytest.mark.parametrize(
    "snapshot",
    [a_snapshot(is_active=False), a_snapshot(delivery=Delivery.AUCTION), a_snapshot(slug="other")],
    ids=["inactive", "auctioned", "unknown"],
)
def test_a_placement_that_is_not_served_is_a_404(form: str, snapshot: Snapshot) -> None:
    assert ask(snapshot, f"/serve/home.{form}").head.startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    "path", ["/serve/home", "/serve/", "/serve/home.exe", "/serve/.html", "/serve/a/b.img"]
)
def test_an_unknown_path_is_a_404(path: str) -> None:
    assert ask(a_snapshot(an_assignment_row()), path).head.startswith(b"HTTP/1.1 404 ")


def test_a_link_without_an_ad_is_a_404_with_a_sentence() -> None:
    answer = ask(a_snapshot(), "/serve/home.go")

    assert answer.head.startswith(b"HTTP/1.1 404 ")
    assert b"There is no ad here just now." in answer.body
