"""The sample's pages: a magazine that asks for ads as any publisher's page would, and the shop behind them."""

from http import HTTPStatus

from adloom.runtime.http.hot import Answer, HotHandler, HotRequest, HotRoute, answer_head
from adloom.sample.load import ASIDE_SLUG, HERO_SLUG
from adloom.sample.pictures import PICTURES

CACHED = (b"cache-control", b"max-age=300")
GUARDED = (b"content-security-policy", b"default-src 'self'; style-src 'self' 'unsafe-inline'")

STYLE = """
  :root { color-scheme: light dark; --ink: #2b2622; --paper: #fbf8f4; --quiet: #7a6f66; }
  @media (prefers-color-scheme: dark) { :root { --ink: #eee7df; --paper: #1e1b18; --quiet: #a3978c; } }
  body { margin: 0; font: 17px/1.6 Georgia, serif; color: var(--ink); background: var(--paper); }
  main, header { max-width: 64rem; margin: 0 auto; padding: 1rem; }
  .columns { display: grid; gap: 2rem; } @media (min-width: 48rem) { .columns { grid-template-columns: 2fr 1fr; } }
  [data-slot] { display: grid; gap: 1rem; align-content: start; } [data-slot="sample-hero"] { aspect-ratio: 4; }
  [data-slot] a { display: block; color: inherit; text-decoration: none; } [data-slot] img { width: 100%; display: block; }
  .mark { font: 12px/1.4 system-ui, sans-serif; color: var(--quiet); } code { font-size: .9em; }
"""

MAGAZINE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>The Hedgerow — a sample page of Adloom</title><style>{STYLE}</style></head>
<body><header><h1>The Hedgerow</h1><div data-slot="{HERO_SLUG}"></div></header>
<main class="columns"><article><h2>What the hedge knows about November</h2>
<p>Nothing on this page knows who you are. The two slots asked for ads by their names, the answers came from
memory, and each ad counted one impression when it was shown. A click on one of them counts too.</p>
<p>Open the browser's network view and look at <code>/banners/serve/{HERO_SLUG}</code>: that is the whole protocol.
Then pause the sample campaign over the admin API and load this page again.</p></article>
<aside data-slot="{ASIDE_SLUG}"></aside></main>
<script src="/sample/page.js"></script></body></html>
"""

# Elements and properties only, never markup: what a banner says cannot become script.
SCRIPT = """"use strict";
for (const slot of document.querySelectorAll("[data-slot]")) {
  fetch("/banners/serve/" + slot.dataset.slot).then((answer) => answer.json()).then(({ banners }) => {
    for (const banner of banners || []) {
      const link = document.createElement("a");
      link.href = banner.clickUrl;
      link.rel = "sponsored";
      const image = document.createElement("img");
      image.src = banner.primaryImageUrl;
      image.alt = banner.primaryImageAlt || "";
      const mark = document.createElement("span");
      mark.className = "mark";
      mark.textContent = "Ad · " + banner.ctaLabel;
      link.append(image, mark);
      slot.append(link);
      new Image().src = banner.impressionUrl;
    }
  });
}
"""

SHOP = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Meadow &amp; Oak — a sample shop of Adloom</title><style>{STYLE}</style></head>
<body><main><h1>Meadow &amp; Oak</h1><p>This is where the sample's ads lead. Your click is in the ledger by now.</p>
<p><a href="/sample">Back to the magazine</a></p></main></body></html>
"""


def sample_routes() -> list[HotRoute]:
    """List the sample's routes."""
    pages = {
        "/sample": _answer(MAGAZINE, b"text/html; charset=utf-8"),
        "/sample/shop": _answer(SHOP, b"text/html; charset=utf-8"),
        "/sample/page.js": _answer(SCRIPT, b"text/javascript; charset=utf-8"),
        **{picture.path: _answer(picture.svg(), b"image/svg+xml") for picture in PICTURES},
    }
    return [
        HotRoute(b"GET", path.encode(), is_prefix=False, handler=_always(answer))
        for path, answer in pages.items()
    ]


def _answer(text: str, content_type: bytes) -> Answer:
    return Answer(answer_head(HTTPStatus.OK, content_type, CACHED, GUARDED), text.encode())


def _always(answer: Answer) -> HotHandler:
    def same(request: HotRequest) -> Answer:
        del request
        return answer

    return same
