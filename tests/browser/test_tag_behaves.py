"""The tag and its visitor: consent, privacy, keyboard, motion, and pages that change."""

from typing import Any, cast

import pytest
from playwright.sync_api import Browser, CDPSession, Page, Route, expect

from tests.support.chromium import a_visit, stand_still
from tests.support.product import Product, wait_until
from tests.support.publisher import Seller, Site, place, tag

pytestmark = [pytest.mark.browser, pytest.mark.process]

REFRESHES = 100
SPACE = 'style="min-height: 200px"'
STORED = "localStorage.getItem('adloom.id')"
OBJECTS = "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { value: true });"


@pytest.fixture(scope="module", autouse=True)
def _ads(seller: Seller) -> None:
    seller.ads("hero", "full_static")
    seller.ads("slides", "full_slider", 3)
    seller.ads("asks", "popup")
    seller.ads("bar", "sticky_bar")


def test_no_request_before_consent_and_no_data_left_after_it_is_withdrawn(
    chromium: Browser, product: Product, site: Site
) -> None:
    head = tag(product, consent="required", storage="allowed")

    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page("/consent", place("hero", SPACE), head=head))
        page.wait_for_function("window.adloom.refresh")
        page.evaluate("adloom.refresh()")
        page.evaluate("adloom.consent(false)")

        assert [one.url for one in visit.requests_to(product.delivery_url)] == [
            f"{product.delivery_url}/tag.js"
        ]
        assert page.evaluate(STORED) is None

        page.evaluate("adloom.consent(true)")
        expect(page.locator(".banner")).to_be_visible()
        assert page.evaluate(STORED) is not None
        assert len(visit.requests_to("/v1/serve/page")) == 1

        page.evaluate("adloom.consent(false)")
        expect(page.locator(".banner")).to_have_count(0)
        assert page.evaluate(STORED) is None
        page.evaluate("adloom.refresh()")
        assert len(visit.requests_to("/v1/serve/page")) == 1
        assert visit.errors == []


def test_a_page_in_the_background_requests_nothing_before_it_is_looked_at(
    chromium: Browser, product: Product, site: Site
) -> None:
    away = """Object.defineProperty(Document.prototype, "hidden", { get: () => window.isAway, configurable: true });
        window.isAway = true;"""

    with a_visit(chromium) as visit:
        page = visit.page
        page.add_init_script(away)
        page.goto(site.page("/background", place("hero", SPACE), head=tag(product)))
        page.wait_for_function("(window.adloom || {}).inspect && adloom.inspect().length")
        page.evaluate("for (let n = 0; n < 5; n++) adloom.refresh(); undefined")
        page.evaluate("new Promise((done) => setTimeout(done, 200))")
        assert visit.requests_to("/v1/serve/page") == []

        page.evaluate("isAway = false; document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.locator(".banner")).to_be_visible()
        assert len(visit.requests_to("/v1/serve/page")) == 1
        assert visit.errors == []


def test_a_lazy_slot_is_asked_for_when_it_comes_near_and_only_once(
    chromium: Browser, product: Product, site: Site
) -> None:
    far = '<div style="height: 5000px"></div>'
    lazy = place("slides", f"{SPACE} data-lazy id=lazy")
    hidden = place("bar", "data-lazy id=hidden hidden")

    def list_asked(page: Page) -> list[str]:
        return page.evaluate("adloom.inspect().filter((slot) => slot.answer).map((slot) => slot.slug)")

    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page("/lazy", place("hero", SPACE) + hidden + far + lazy, head=tag(product)))
        expect(page.locator(".banner")).to_have_count(1)
        page.evaluate("adloom.refresh()")
        page.evaluate("adloom.consent(false); adloom.consent(true)")
        expect(page.locator(".banner")).to_have_count(1)
        assert list_asked(page) == ["hero"]
        before = len(visit.requests_to("/v1/serve/page"))

        page.evaluate("scrollTo(0, lazy.getBoundingClientRect().top - 1.5 * innerHeight)")
        expect(page.locator("#lazy .banner")).to_have_count(3)
        page.evaluate("scrollTo(0, 9000)")
        page.evaluate("scrollTo(0, 0)")
        page.evaluate("hidden.hidden = false")
        page.wait_for_function("adloom.inspect()[1].answer")
        assert list_asked(page) == ["hero", "bar", "slides"]
        asked = visit.sent_json("/v1/serve/page")
        assert len(asked) == before + 2
        assert [len(one["shown"]) for one in (asked[0], *asked[-2:])] == [0, 1, 4]

    with a_visit(chromium) as visit:
        page = visit.page
        over = place(
            "bar", "data-layout=sticky_bar id=over"
        )  # It lies over the page, wherever its element is.
        page.goto(
            site.page("/all-lazy", place("hero", SPACE) + far + lazy + over, head=tag(product, lazy=""))
        )
        expect(page.locator("#over .banner")).to_be_visible()
        expect(page.locator(".banner")).to_have_count(2)
        page.evaluate("adloom.refresh('slides')")
        expect(page.locator("#lazy .banner")).to_have_count(3)
        page.evaluate("scrollTo(0, 9000)")
        page.evaluate("new Promise((done) => setTimeout(done, 200))")
        assert len(visit.requests_to("/v1/serve/page")) == 2
        assert visit.errors == []


def test_nothing_is_sent_after_consent_is_withdrawn_of_what_was_seen_before(
    chromium: Browser, product: Product, site: Site
) -> None:
    withdrawing = """<script>
      window.adloom = [(tag) => tag.on("impression", () => { tag.consent(false); window.isWithdrawn = true; })];
    </script>"""

    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page("/withdrawn", place("hero", SPACE), head=withdrawing + tag(product)))
        page.wait_for_function("window.isWithdrawn")
        page.evaluate("new Promise((done) => setTimeout(done, 300))")

        assert visit.requests_to("/banners/events/batch") == []


def test_a_call_that_fails_and_an_element_of_that_name_end_nothing(
    chromium: Browser, product: Product, site: Site
) -> None:
    queue = "window.adloom = [() => { throw Error('of the page'); }, () => (window.isCalled = true)];"

    with a_visit(chromium) as visit:
        visit.page.goto(
            site.page("/fails", place("hero", SPACE), head=f"<script>{queue}</script>" + tag(product))
        )
        expect(visit.page.locator(".banner")).to_be_visible()
        assert visit.page.evaluate("window.isCalled")
        assert visit.errors == ["uncaught: of the page"]
    with a_visit(chromium) as visit:
        visit.page.goto(site.page("/named", place("hero", f"{SPACE} id=adloom"), head=tag(product)))
        expect(visit.page.locator(".banner")).to_be_visible()
        assert visit.errors == []


def test_a_page_can_queue_calls_before_the_script_has_loaded(
    chromium: Browser, product: Product, site: Site
) -> None:
    early = "<script>window.adloom = [(tag) => tag.on('filled', (event) => (window.filled = event.slug))]</script>"

    with a_visit(chromium) as visit:
        visit.page.goto(site.page("/early", place("hero", SPACE), head=early + tag(product)))

        visit.page.wait_for_function("window.filled === 'hero'")


@pytest.mark.parametrize(
    ("storage", "start", "is_known"), [("", "", False), ("allowed", "", True), ("allowed", OBJECTS, False)]
)
def test_a_visitor_has_an_id_only_if_the_page_allows_it_and_the_visitor_does_not_object(  # noqa: PLR0913, PLR0917 - a table
    chromium: Browser,
    product: Product,
    site: Site,
    storage: str,
    start: str,
    is_known: bool,  # noqa: FBT001 - likewise
) -> None:
    address = site.page("/known", place("hero", SPACE), head=tag(product, storage=storage))

    with a_visit(chromium) as visit:
        page = visit.page
        page.add_init_script(start)
        page.goto(address)
        expect(page.locator(".banner")).to_be_visible()
        kept = page.evaluate(STORED)
        page.reload()
        expect(page.locator(".banner")).to_be_visible()

        first, second = visit.sent_json("/v1/serve/page")
        assert (kept is not None) == is_known
        assert first.get("userId") == second.get("userId") == kept
        assert first["context"].get("newVisitor") is (True if is_known else None)
        assert second["context"].get("newVisitor") is (False if is_known else None)
        assert page.evaluate("document.cookie") == ""
        assert page.context.cookies() == []


def test_only_the_host_of_the_referrer_is_sent(chromium: Browser, product: Product, site: Site) -> None:
    address = site.page("/came", place("hero", SPACE), head=tag(product))
    link = site.page("/from", f'<a href="{address}">on</a>')

    with a_visit(chromium) as visit:
        visit.page.goto(f"{link}?private=1")
        visit.page.get_by_role("link", name="on").click()
        expect(visit.page.locator(".banner")).to_be_visible()

        [body] = visit.sent_json("/v1/serve/page")
        assert body["context"] == {"referrer": "localhost"}


def active(page: Page, slug: str) -> str | None:
    """Return the name of the focused element of a placement."""
    script = """(slug) => {
      const { activeElement: it } = document.querySelector(`[data-adloom="${slug}"]`).shadowRoot;
      return it && (it.ariaLabel || it.className);
    }"""
    return page.evaluate(script, slug)


def test_a_popup_takes_the_focus_keeps_it_and_returns_it(
    chromium: Browser, product: Product, site: Site
) -> None:
    body = "<button autofocus>Before</button>" + place("asks", SPACE) + "<button>After</button>"

    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page("/asks", body, head=tag(product)))
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()

        went: list[str | None] = [active(page, "asks")]
        for key in ("Tab", "Tab", "Shift+Tab", "Shift+Tab"):
            page.keyboard.press(key)
            went.append(active(page, "asks"))
        assert went == ["Close", "link", "Close", "link", "Close"]

        page.keyboard.press("Escape")
        expect(page.locator(".banner")).to_have_count(0)
        expect(page.get_by_role("button", name="Before")).to_be_focused()
        page.evaluate("adloom.refresh()")
        expect(page.locator(".banner")).to_have_count(0)
        page.evaluate("adloom.refresh('asks')")
        expect(page.get_by_role("dialog")).to_be_visible()
        assert visit.errors == []


@pytest.mark.parametrize("around", ["display: none", "visibility: hidden"])
def test_a_popup_that_the_page_hides_leaves_the_page_alone(
    chromium: Browser, product: Product, site: Site, around: str
) -> None:
    body = f'<button>Read on</button><div style="{around}">{place("asks")}</div>'

    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page("/hides", body, head=tag(product)))
        image = page.locator("[data-adloom] img")
        expect(image).to_have_js_property("complete", value=True)

        page.get_by_role("button", name="Read on").click()
        expect(page.locator("dialog[open]")).to_have_count(0)


def test_a_popup_without_anything_to_show_does_not_open(
    chromium: Browser, product: Product, site: Site, seller: Seller
) -> None:
    nothing = dict.fromkeys(("headline", "subheadline", "description", "ctaLabel"))
    seller.ads("asks-nothing", "popup", primaryImageUrl=f"{site.url}/nowhere.png", **nothing)

    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(
            site.page("/asks-nothing", "<button>Read on</button>" + place("asks-nothing"), head=tag(product))
        )
        expect(page.locator("[data-adloom] .bare")).to_have_count(1)

        page.get_by_role("button", name="Read on").click()
        expect(page.locator("dialog[open]")).to_have_count(0)


def test_the_keyboard_reaches_and_closes_a_bar(chromium: Browser, product: Product, site: Site) -> None:
    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page("/bar", place("bar", SPACE), head=tag(product)))
        expect(page.locator(".banner")).to_be_visible()

        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        assert active(page, "bar") == "Close"
        page.keyboard.press("Enter")

        expect(page.locator(".banner")).to_have_count(0)


def test_slides_change_automatically_until_they_are_paused(
    chromium: Browser, product: Product, site: Site
) -> None:
    with a_visit(chromium) as visit:
        page = visit.page
        stand_still(page)
        page.goto(site.page("/slides", place("slides", SPACE), head=tag(product)))
        shown = page.locator(".banner:not([inert])")
        expect(shown).to_contain_text("Autumn 1")

        page.clock.run_for(6_500)
        expect(shown).to_contain_text("Autumn 2")
        for _ in range(2):
            page.keyboard.press("Tab")
        assert active(page, "slides") == "Pause"
        page.keyboard.press("Enter")
        assert active(page, "slides") == "Play"
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(shown).to_contain_text("Autumn 3")
        page.evaluate("document.activeElement.blur()")
        page.clock.run_for(20_000)
        expect(shown).to_contain_text("Autumn 3")


def test_slides_do_not_move_with_reduced_motion(chromium: Browser, product: Product, site: Site) -> None:
    with a_visit(chromium, reduced_motion="reduce") as visit:
        page = visit.page
        stand_still(page)
        page.goto(site.page("/still", place("slides", SPACE), head=tag(product)))
        shown = page.locator(".banner:not([inert])")
        expect(shown).to_contain_text("Autumn 1")

        page.clock.run_for(20_000)
        expect(shown).to_contain_text("Autumn 1")
        page.get_by_role("button", name="Next").click()
        expect(shown).to_contain_text("Autumn 2")
        expect(page.locator(".track")).to_have_css("transition-duration", "0s")


def test_placements_added_later_are_filled_and_removed_ones_are_forgotten(
    chromium: Browser, product: Product, site: Site
) -> None:
    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page("/app", '<div id="app"></div>', head=tag(product)))
        page.wait_for_function("window.adloom")

        page.evaluate("app.append(Object.assign(document.createElement('div'), { id: 'late' }))")
        page.evaluate("late.dataset.adloom = 'hero'")
        expect(page.locator("#late .banner")).to_have_count(1)
        page.evaluate("late.dataset.adloom = 'slides'")
        expect(page.locator("#late .banner")).to_have_count(3)
        page.evaluate("window.kept = late; late.remove()")
        page.evaluate("adloom.refresh()")
        page.evaluate("app.append(kept)")
        expect(page.locator("#late .banner")).to_have_count(3)

        asked = [body["slots"] for body in visit.sent_json("/v1/serve/page")]
        assert asked == [["hero"], ["slides"], ["slides"]]
        assert visit.errors == []


def test_a_tag_included_twice_requests_once(chromium: Browser, product: Product, site: Site) -> None:
    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page("/twice", place("hero", SPACE) + place("slides", SPACE), head=tag(product) * 2))
        expect(page.locator(".banner").first).to_be_visible()

        assert [body["slots"] for body in visit.sent_json("/v1/serve/page")] == [["hero", "slides"]]


def test_an_error_is_reported_and_the_old_content_stays(
    chromium: Browser, product: Product, site: Site
) -> None:
    listening = "<script>errors = []; window.adloom = [(tag) => tag.on('error', (event) => errors.push(event.message))]</script>"

    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(
            site.page("/wrong", place("hero", SPACE) + place("nowhere", SPACE), head=listening + tag(product))
        )
        expect(page.locator(".banner")).to_be_visible()
        page.wait_for_function("errors.length === 1")
        page.route("**/v1/serve/page", lambda route: route.abort())
        page.evaluate("adloom.refresh('hero')")

        page.wait_for_function("errors.length === 2")
        assert page.evaluate("errors[0]") == "No active placement has this slug."
        expect(page.locator(".banner")).to_be_visible()


def test_an_answer_that_makes_no_sense_ends_neither_the_other_slots_nor_the_script(
    chromium: Browser, product: Product, site: Site
) -> None:
    address = site.page("/senseless", place("hero", SPACE) + place("slides", SPACE), head=tag(product))

    def answer(route: Route) -> None:
        body = route.fetch().json()
        body["slots"]["hero"]["placement"] = None
        route.fulfill(json=body)

    with a_visit(chromium) as visit:
        page = visit.page
        page.route("**/v1/serve/page", answer)
        page.goto(address)
        expect(page.locator(".banner")).to_have_count(3)
        page.route("**/v1/serve/page", lambda route: route.fulfill(body="null"))
        page.evaluate("adloom.refresh()")

        expect(page.locator(".banner")).to_have_count(3)
        assert visit.errors == []


def counted(session: CDPSession) -> dict[str, float]:
    session.send("HeapProfiler.collectGarbage")
    answer = cast("dict[str, Any]", session.send("Performance.getMetrics"))
    return {one["name"]: one["value"] for one in answer["metrics"]}


def counts(session: CDPSession) -> dict[str, float]:
    """Count objects after garbage collection; the browser keeps the last removed ones for one more collection."""
    before, after = counted(session), counted(session)
    while after["Nodes"] < before["Nodes"]:
        before, after = after, counted(session)
    return after


def test_a_hundred_refreshes_leak_nothing(chromium: Browser, product: Product, site: Site) -> None:
    body = place("hero", SPACE) + place("slides", SPACE) + place("bar", SPACE)

    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page("/leak", body, head=tag(product)))
        expect(page.locator(".banner")).to_have_count(5)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        script = "async (times) => { for (let n = 0; n < times; n++) await adloom.refresh(); }"
        page.evaluate(script, 10)
        before = counts(session)

        page.evaluate(script, REFRESHES)

        expect(page.locator(".banner")).to_have_count(5)
        assert len(visit.requests_to("/v1/serve/page")) == 1 + 10 + REFRESHES

        def is_let_go() -> bool:
            # What is being shown at the moment differs by a few; a leak would be hundreds, for good.
            after = counts(session)
            return (
                after["Nodes"] - before["Nodes"] < 50
                and after["JSEventListeners"] - before["JSEventListeners"] < 20
                and after["JSHeapUsedSize"] - before["JSHeapUsedSize"] < 400_000
            )

        wait_until(is_let_go, seconds=30, what="the browser has let go of what was shown")
        assert visit.errors == []
