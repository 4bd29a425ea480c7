"""What the tag counts: ads in view for a second, once, through failures; and clicks, with and without a script."""

from collections import Counter

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.chromium import Visit, a_visit, stand_still
from tests.support.product import Product, wait_until
from tests.support.publisher import Seller, Site, place, tag

pytestmark = [pytest.mark.browser, pytest.mark.process]

COUNTED_SECONDS_MAX = 60.0
SPACE = 'style="height: 200px"'
BATCH = "/banners/events/batch"
FAR = '<p style="height: 3000px">A long way down.</p>'


def is_counted(seller: Seller, banner_id: str, impressions: int, clicks: int) -> None:
    """Wait for the figures, and then for late events."""
    wait_until(
        lambda: seller.counted(banner_id) >= (impressions, clicks),
        seconds=COUNTED_SECONDS_MAX,
        what=f"{impressions} impressions and {clicks} clicks",
    )
    assert seller.counted(banner_id) == (impressions, clicks)


def shows(page: Page) -> None:
    expect(page.locator(".banner").first.locator("img")).to_have_js_property("complete", value=True)


def reported(visit: Visit) -> list[str]:
    return [event["correlationId"] for body in visit.sent_json(BATCH) for event in body["events"]]


def test_an_ad_seen_and_clicked_counts_one_impression_and_one_click(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    site.page("/shop", "<h1>The shop</h1>")
    [banner_id] = seller.ads("seen", "full_static", utmSource="magazine")

    with a_visit(chromium) as visit:
        page = visit.page
        with page.expect_response(f"**{BATCH}"):
            page.goto(site.page("/seen", place("seen", SPACE), head=tag(product)))
        page.get_by_role("link", name="Autumn").click()
        page.wait_for_url(f"{site.url}/shop?utm_source=magazine")

        [name] = reported(visit)
        assert name.startswith("offer:")
        assert visit.errors == []
    is_counted(seller, banner_id, 1, 1)


def test_a_click_counts_where_the_page_has_its_links_fetched_ahead(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    site.page("/shop", "<h1>The shop</h1>")
    [banner_id] = seller.ads("ahead", "full_static")
    fetch_ahead = """(link) => document.head.append(Object.assign(document.createElement("script"), {
      type: "speculationrules", textContent: JSON.stringify({ prefetch: [{ urls: [link.href] }] }),
    }))"""

    def counted() -> tuple[int, int]:
        totals = seller.totals(banner_id)
        return totals["clicks"] - totals["invalidClicks"], totals["invalidClicks"]

    with a_visit(chromium) as visit:
        page = visit.page
        with page.expect_response(f"**{BATCH}"):
            page.goto(site.page("/ahead", place("ahead", SPACE), head=tag(product)))
        link = page.get_by_role("link", name="Autumn")
        link.evaluate(fetch_ahead)
        wait_until(lambda: counted() == (0, 1), seconds=COUNTED_SECONDS_MAX, what="it was fetched ahead")
        link.click()
        page.wait_for_url(f"{site.url}/shop")

        wait_until(lambda: counted()[0] == 1, seconds=COUNTED_SECONDS_MAX, what="the click is counted")


def test_an_ad_counts_when_half_of_it_is_in_view_for_a_second_and_not_before(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    [banner_id] = seller.ads("far", "full_static", mobileImageUrl=site.picture(3))

    with a_visit(chromium, viewport={"width": 1000, "height": 600}) as visit:
        page = visit.page
        stand_still(page)
        page.goto(site.page("/far", FAR + place("far", SPACE) + FAR, head=tag(product)))
        shows(page)
        at: float = page.locator("[data-adloom]").evaluate("(place) => place.offsetTop")

        page.evaluate("(y) => scrollTo(0, y)", at - 600 + 80)  # Less than half.
        two_frames(page)
        page.clock.run_for(5_000)
        page.evaluate("(y) => scrollTo(0, y)", at)
        two_frames(page)
        page.clock.run_for(900)
        page.evaluate("scrollTo(0, 0)")
        two_frames(page)
        page.clock.run_for(5_000)
        assert reported(visit) == []

        page.evaluate("(y) => scrollTo(0, y)", at - 600 + 120)  # More than half.
        two_frames(page)
        with page.expect_response(f"**{BATCH}"):
            page.clock.run_for(1_200)
        page.evaluate("scrollTo(0, 0)")
        page.evaluate("(y) => scrollTo(0, y)", at)
        page.set_viewport_size({"width": 500, "height": 600})
        expect(page.locator("[data-adloom] img")).to_have_js_property("currentSrc", site.picture(3))
        two_frames(page)
        page.clock.run_for(5_000)
        assert len(reported(visit)) == 1
    is_counted(seller, banner_id, 1, 0)


def two_frames(page: Page) -> None:
    """Wait until the browser has checked visibility again; its frames do not follow the page's fake clock."""
    for _ in range(2):
        page.screenshot()


def test_an_ad_that_is_clicked_before_it_counts_as_seen_counts_as_seen(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    site.page("/shop", "<h1>The shop</h1>")
    [banner_id] = seller.ads("quick", "full_static")

    with a_visit(chromium) as visit:
        page = visit.page
        stand_still(page)  # No second passes.
        page.goto(site.page("/quick", place("quick", SPACE), head=tag(product)))
        shows(page)
        assert reported(visit) == []
        page.get_by_role("link", name="Autumn").click()
        page.wait_for_url(f"{site.url}/shop")

    is_counted(seller, banner_id, 1, 1)
    assert seller.totals(banner_id)["invalidClicks"] == 0


def test_a_video_counts_when_it_is_in_view_for_two_seconds(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    seller.ads("clip", "full_static", videoUrl=f"{site.url}/clip.webm")
    films: list[Route] = []  # That do not come.

    with a_visit(chromium) as visit:
        page = visit.page
        stand_still(page)
        page.route("**/clip.webm", lambda route: films.append(route))  # noqa: PLW0108 - a builtin cannot be marked
        page.goto(site.page("/clip", place("clip", SPACE), head=tag(product)))
        video = page.locator("video")
        expect(video).to_be_visible()
        page.clock.run_for(5_000)
        video.dispatch_event("loadeddata")
        two_frames(page)
        page.clock.run_for(1_800)
        assert reported(visit) == []
        with page.expect_response(f"**{BATCH}"):
            page.clock.run_for(400)
        assert len(reported(visit)) == 1
        for one in films:
            one.abort()


def test_a_frame_or_video_that_has_not_loaded_is_not_seen(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    seller.ads("late-html", "full_static", mediaVariants={"html": f"{site.url}/late.html"})
    seller.ads("late-film", "full_static", videoUrl=f"{site.url}/late.mp4")
    waiting: list[Route] = []

    with a_visit(chromium) as visit:
        page = visit.page
        page.route("**/late.*", lambda route: waiting.append(route))  # noqa: PLW0108 - a builtin cannot be marked
        page.goto(
            site.page("/late", place("late-html", SPACE) + place("late-film", SPACE), head=tag(product))
        )
        expect(page.locator(".banner")).to_have_count(2)
        page.evaluate("new Promise((done) => setTimeout(done, 1500))")
        assert reported(visit) == []

        with page.expect_response(f"**{BATCH}"):
            for one in waiting:
                one.fulfill(body="<p>Hello</p>", content_type="text/html")
    assert len(waiting) == 2


def test_slides_count_as_they_come_into_view(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    first, second, third = seller.ads("turning", "full_slider", 3)

    with a_visit(chromium, reduced_motion="reduce") as visit:
        page = visit.page
        with page.expect_response(f"**{BATCH}"):
            page.goto(site.page("/turning", place("turning", SPACE), head=tag(product)))
        with page.expect_response(f"**{BATCH}"):
            page.get_by_role("button", name="Next").click()

    is_counted(seller, first, 1, 0)
    is_counted(seller, second, 1, 0)
    assert seller.counted(third) == (0, 0)


def test_a_refused_event_is_sent_again_and_counts_once(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    [banner_id] = seller.ads("again", "full_static")
    outcomes = iter(["lost", "unavailable", "taken and not answered"])

    def answer(route: Route) -> None:
        match next(outcomes, None):
            case "lost":
                route.abort()
            case "unavailable":
                route.fulfill(status=503)
            case "taken and not answered":
                route.fetch()
                route.abort()
            case _:
                route.continue_()

    with a_visit(chromium) as visit:
        visit.page.route(f"**{BATCH}", answer)
        visit.page.goto(site.page("/again", place("again", SPACE), head=tag(product)))
        wait_until_asked(visit, 4)

        assert len(set(reported(visit))) == 1
    is_counted(seller, banner_id, 1, 0)


def wait_until_asked(visit: Visit, times: int) -> None:
    while len(visit.requests_to(BATCH)) < times:
        visit.page.wait_for_event("request")


def only_beacons(route: Route) -> None:
    if route.request.resource_type == "fetch":
        route.abort()
    else:
        route.continue_()


def test_unsent_events_are_sent_when_the_visitor_leaves(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    [banner_id] = seller.ads("leaving", "full_static")
    site.page("/elsewhere", "<h1>Elsewhere</h1>")

    with a_visit(chromium) as visit:
        page = visit.page
        page.route(f"**{BATCH}", only_beacons)
        page.goto(site.page("/leaving", place("leaving", SPACE), head=tag(product)))
        wait_until_asked(visit, 1)
        page.goto(f"{site.url}/elsewhere")

        is_counted(seller, banner_id, 1, 0)


def test_unsent_events_are_sent_from_a_browser_without_beacons(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    [banner_id] = seller.ads("no-beacon", "full_static")
    leaving = """<script>
      window.adloom = [(tag) => tag.on("impression", () => dispatchEvent(new Event("pagehide")))];
    </script>"""

    with a_visit(chromium) as visit:
        page = visit.page
        page.add_init_script("Object.defineProperty(Navigator.prototype, 'sendBeacon', { value: undefined })")
        with page.expect_response(f"**{BATCH}"):
            page.goto(site.page("/no-beacon", place("no-beacon", SPACE), head=leaving + tag(product)))

        is_counted(seller, banner_id, 1, 0)
        assert visit.errors == []


def test_a_page_without_script_shows_an_image_and_counts_it_and_its_click(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    site.page("/shop", "<h1>The shop</h1>")
    [banner_id] = seller.ads("plain", "full_static", mobileImageUrl=site.picture(4))
    ours = f"{product.delivery_url}/serve/plain"
    body = (
        place("plain", SPACE)
        + f'<noscript><a href="{ours}.go"><img src="{ours}.img" alt="An ad"></a></noscript>'
    )

    with a_visit(chromium, java_script_enabled=False) as visit:
        page = visit.page
        page.goto(site.page("/plain", body, head=tag(product)))
        expect(page.get_by_role("img", name="An ad")).to_be_visible()
        assert site.picture(0) in [one.url for one in visit.requests]
        page.get_by_role("link").click()
        page.wait_for_url(f"{site.url}/shop")

    is_counted(seller, banner_id, 1, 1)


# What an advertiser's own page can do in its frame: it knows its ids and the token of the click address, and reports
# first, without the token, under every name that the token's bytes could stand for.
HOSTILE = """<!doctype html><title>Hostile</title><p>Mine.</p><script>
  const click = decodeURIComponent(location.hash.slice("#clickTag=".length));
  const [, base, token] = /^(.*)\\/c\\/(.*)$/.exec(click);
  const raw = atob(token.replaceAll("-", "+").replaceAll("_", "/"));
  const hex = [...raw].map((one) => one.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  const events = [];
  for (let at = 0; at + 32 <= hex.length && at < 64; at += 2) {
    const id = hex.slice(at, at + 32).replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
    for (const slot of [0, 1]) for (const type of ["impression", "click"])
      events.push({ type, correlationId: `offer:${id}:${slot}`, bannerId: "BANNER", placementId: "PLACEMENT" });
  }
  fetch(`${base}/banners/events/batch`, { method: "POST", body: JSON.stringify({ events }) });
</script>"""


def test_a_hostile_creative_cannot_cancel_what_it_owes(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    variants = {"html": f"{site.url}/hostile"}
    [banner_id] = seller.ads("hostile", "full_static", mediaVariants=variants)
    served = httpx.get(f"{product.delivery_url}/banners/serve/hostile").json()
    text = HOSTILE.replace("BANNER", banner_id).replace("PLACEMENT", served["placement"]["id"])
    site.pages["/hostile"] = ("text/html; charset=utf-8", text)

    with a_visit(chromium) as visit:
        with visit.page.expect_response(lambda answer: "trackingToken" in (answer.request.post_data or "")):
            visit.page.goto(site.page("/with-hostile", place("hostile", SPACE), head=tag(product)))
        assert max(Counter(reported(visit)).values()) > 1, "the frame has guessed the name of the offer"
        frames = [frame for frame in visit.page.frames if frame.url.startswith(f"{site.url}/hostile")]
        click = frames[0].evaluate("decodeURIComponent(location.hash.slice('#clickTag='.length))")
        assert httpx.get(click).status_code == 302

    is_counted(seller, banner_id, 1, 1)
    assert seller.totals(banner_id)["unboundClicks"] > 0
