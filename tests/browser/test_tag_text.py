"""The tag and the text of a page: sent when it is wanted, once, and never with what a visitor typed."""

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, Route

from tests.support.chromium import Visit, a_visit
from tests.support.product import Product
from tests.support.publisher import Site, place, tag

pytestmark = [pytest.mark.browser, pytest.mark.process]

SLOT = place("article-top")
ARTICLE = "<main><h1>Sourdough bread</h1><p>Bake the loaf\n in a hot   oven.</p></main>"
TYPED = """
<main>
  <p>Said to everyone.</p>
  <form>
    <input value="secret-input"><input type="password" value="secret-password">
    <textarea>secret-textarea</textarea>
    <select><option selected>secret-option</option></select>
    <button>secret-button</button><output>secret-output</output>
    <input list="names"><datalist id="names"><option>secret-datalist</option></datalist>
  </form>
  <div contenteditable>secret-editable <b>secret-inside</b></div>
  <div contenteditable="plaintext-only">secret-plaintext</div>
  <div role="textbox">secret-textbox</div><div role="searchbox">secret-searchbox</div>
  <div role="combobox">secret-combobox</div>
  <div data-adloom-no-text>secret-marked <p>secret-below</p></div>
  <div style="display: none">secret-undisplayed</div><div style="visibility: hidden">secret-hidden</div>
  <div hidden>secret-attribute</div><span aria-hidden="true">secret-aria</span>
  <script>window.secret = "secret-script";</script><style>.secret-style {}</style>
  <template>secret-template</template><noscript>secret-noscript</noscript>
  <nav>secret-nav</nav><aside>secret-aside</aside><footer>secret-footer</footer>
  <p>Said at the end.</p>
</main>
<p>secret-outside</p>
"""


class Answers:
    """Answers of the delivery plane for contextual slots; a test says what is known of the page."""

    def __init__(self) -> None:
        self.reclassify_in_ms = 0

    def slots(self, route: Route) -> None:
        asked = json.loads(route.request.post_data or "")
        canonical = asked.get("canonicalUrl") or ""
        is_own = canonical.startswith(asked["url"].split("/", 3)[0] + "//localhost:")
        empty: dict[str, Any] = {
            "delivery": "contextual",
            "reason": "page_unknown",
            "placement": {},
            "banners": [],
        }
        body: dict[str, Any] = {
            "page": {
                "url": canonical.partition("#")[0] if is_own else asked["url"],
                "state": "unknown",
                "reclassifyInMs": self.reclassify_in_ms,
            },
            "slots": dict.fromkeys(asked["slots"], empty),
            "requestId": "01a1e733-0d41-76da-85d4-e7775f875ff8",
            "servedAt": "2026-11-15T12:00:00.000Z",
        }
        route.fulfill(json=body, headers={"access-control-allow-origin": "*"})


def open_page(visit: Visit, address: str, answers: Answers | None = None) -> None:
    page = visit.page
    page.route("**/v1/serve/page", (answers or Answers()).slots)
    page.route(
        "**/v1/classify-page",
        lambda route: route.fulfill(
            status=202, json={"accepted": True}, headers={"access-control-allow-origin": "*"}
        ),
    )
    page.goto(address)
    page.wait_for_function("!!(window.adloom || {}).refresh")  # A function would be called.


def texts(visit: Visit) -> list[dict[str, Any]]:
    """Wait until the browser has had nothing to do for a while, and return the texts that it sent."""
    visit.page.wait_for_load_state("networkidle")
    # A browser may never call back otherwise.
    visit.page.evaluate(
        "new Promise((done) => requestIdleCallback(() => setTimeout(done, 300), {timeout: 30_000}))"
    )
    return visit.sent_json("/v1/classify-page")


def test_the_main_text_of_an_unknown_page_is_sent_with_its_title_and_language(
    chromium: Browser, product: Product, site: Site
) -> None:
    with a_visit(chromium) as visit:
        open_page(visit, site.page("/bread", ARTICLE + SLOT, head=tag(product)) + "?a=1#of-the-reader")

        assert texts(visit) == [
            {
                "url": f"{site.url}/bread?a=1",
                "title": "A page",
                "text": "Sourdough bread Bake the loaf in a hot oven.",
                "language": "en",
            }
        ]
        [asked] = visit.sent_json("/v1/serve/page")
        assert (asked["url"], asked["slots"]) == (f"{site.url}/bread?a=1", ["article-top"])
        [sent] = visit.requests_to("/v1/classify-page")
        headers = sent.all_headers()
        assert headers["origin"] == site.url
        assert "cookie" not in headers
        assert visit.errors == []


def test_what_a_visitor_typed_or_alone_sees_is_never_sent(
    chromium: Browser, product: Product, site: Site
) -> None:
    with a_visit(chromium) as visit:
        address = site.page("/typed", "<header>secret-header</header>" + TYPED + SLOT, head=tag(product))
        page = visit.page
        page.add_init_script(
            "addEventListener('DOMContentLoaded', () => {"
            "document.querySelector('textarea').value = 'secret-typed';"
            "document.querySelector('[contenteditable]').textContent += 'secret-written'; });"
        )
        open_page(visit, address)

        [sent] = texts(visit)
        assert sent["text"] == "Said to everyone. Said at the end."
        assert all("secret" not in (request.post_data or "") for request in visit.requests)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("<main contenteditable>secret</main>", id="the whole page is editable"),
        pytest.param("<div data-adloom-no-text><main>secret</main></div>", id="the whole page is marked"),
        pytest.param('<main><div><input value="secret"></div></main>', id="nothing but fields"),
    ],
)
def test_a_page_without_text_for_everyone_sends_nothing(
    chromium: Browser, product: Product, site: Site, body: str
) -> None:
    with a_visit(chromium) as visit:
        open_page(visit, site.page("/nothing", body + SLOT, head=tag(product)))

        assert texts(visit) == []
        assert visit.errors == []


def test_a_text_is_sent_once_per_address(chromium: Browser, product: Product, site: Site) -> None:
    with a_visit(chromium) as visit:
        page = visit.page
        open_page(visit, site.page("/once", ARTICLE + SLOT, head=tag(product)))
        for _ in range(3):
            page.evaluate("adloom.refresh()")
        assert len(texts(visit)) == 1
        assert len(visit.requests_to("/v1/serve/page")) == 4

        page.evaluate("history.pushState({}, '', '/twice')")
        page.evaluate("document.querySelector('h1').textContent = 'Rye bread'")
        page.evaluate("adloom.refresh()")

        first, second = texts(visit)
        assert (first["url"], second["url"]) == (f"{site.url}/once", f"{site.url}/twice")
        assert second["text"].startswith("Rye bread ")


def test_a_known_page_sends_nothing(chromium: Browser, product: Product, site: Site) -> None:
    answers = Answers()
    answers.reclassify_in_ms = 1

    with a_visit(chromium) as visit:
        open_page(visit, site.page("/known", ARTICLE + SLOT, head=tag(product)), answers)

        assert texts(visit) == []


def test_an_attribute_of_the_script_turns_texts_off(chromium: Browser, product: Product, site: Site) -> None:
    head = tag(product, how="async data-adloom-no-text")

    with a_visit(chromium) as visit:
        open_page(visit, site.page("/off", ARTICLE + SLOT, head=head))

        assert texts(visit) == []
        assert len(visit.requests_to("/v1/serve/page")) == 1


def test_without_consent_nothing_is_sent(chromium: Browser, product: Product, site: Site) -> None:
    with a_visit(chromium) as visit:
        open_page(visit, site.page("/consent", ARTICLE + SLOT, head=tag(product, consent="required")))
        assert texts(visit) == []
        assert visit.requests_to("/v1/") == []

        visit.page.evaluate("adloom.consent(true)")
        assert len(texts(visit)) == 1


CANONICAL = '<link rel="canonical" href="{}">'


@pytest.mark.parametrize(
    ("canonical", "expected"),
    [
        pytest.param("/proper#top", "/proper", id="of its own origin"),
        pytest.param("https://elsewhere.example/x", "/found?session=1", id="of another origin"),
    ],
)
def test_the_address_is_the_one_that_the_page_names(
    chromium: Browser, product: Product, site: Site, canonical: str, expected: str
) -> None:
    head = CANONICAL.format(canonical) + tag(product)

    with a_visit(chromium) as visit:
        open_page(visit, site.page("/found", ARTICLE + SLOT, head=head) + "?session=1")

        assert [one["url"] for one in texts(visit)] == [site.url + expected]


def test_a_strict_content_security_policy_needs_only_the_delivery_address(
    chromium: Browser, product: Product, site: Site
) -> None:
    policy = f"default-src 'none'; script-src {product.delivery_url}; connect-src {product.delivery_url}"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' + tag(product)

    with a_visit(chromium) as visit:
        open_page(visit, site.page("/strict", ARTICLE + SLOT, head=head))

        assert len(texts(visit)) == 1
        assert visit.errors == []


def test_long_pages_are_cut(chromium: Browser, product: Product, site: Site) -> None:
    body = "<main>" + "".join(f"<p>Word {number}.</p>" for number in range(5_000)) + "</main>"

    with a_visit(chromium) as visit:
        open_page(visit, site.page("/long", body + SLOT, head=tag(product)))

        [sent] = texts(visit)
        assert len(sent["text"]) <= 8_000
        assert sent["text"].startswith("Word 0. Word 1. ")
