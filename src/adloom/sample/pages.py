"""The sample's pages: a magazine that asks for ads as any publisher's page would, and the shop behind them."""

from http import HTTPStatus

from adloom.runtime.http.hot import Answer, HotHandler, HotRequest, HotRoute, answer_head
from adloom.sample.load import ASIDE_SLUG, HERO_SLUG
from adloom.sample.pictures import PICTURES

CACHED = (b"cache-control", b"max-age=300")
# Pictures may come from elsewhere, as those of any banner: the page may also be opened by another of our names.
GUARDED = (b"content-security-policy", b"default-src 'self'; img-src *")

# A slot has its height before its ad is there, so that nothing moves when it comes.
STYLE = """
:root { color-scheme: light dark; --ink: #2b2622; --paper: #fbf8f4; --quiet: #6f655c; --line: #e3dbd2; --mark: #a8481f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eee7df; --paper: #1c1917; --quiet: #a89c91; --line: #39332e; --mark: #e58a5c; }
}
* { box-sizing: border-box; }
body { margin: 0; font: 18px/1.65 Georgia, "Liberation Serif", serif; color: var(--ink); background: var(--paper); }
.page { max-width: 68rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding: 2rem 0 1.25rem; text-align: center; }
h1 { margin: 0; font-size: 3.25rem; line-height: 1.1; letter-spacing: -.02em; } h1 a { color: inherit; text-decoration: none; }
.small { font: 13px/1.5 system-ui, sans-serif; color: var(--quiet); } a { color: var(--mark); }
.line { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .25rem 1rem; margin: 1.25rem 0 0;
  padding: .5rem 0; border: solid var(--line); border-width: 1px 0; }
.columns { display: grid; gap: 1.5rem 2.5rem; margin: 1.75rem 0 2.5rem; }
@media (min-width: 52rem) { .columns { grid-template-columns: 1fr 20rem; } }
h2 { margin: 0 0 .25rem; font-size: 2.1rem; line-height: 1.2; letter-spacing: -.01em; } article p { margin: .9rem 0; }
.first::first-letter { float: left; padding-right: .5rem; font-size: 3.6rem; line-height: .85; color: var(--mark); }
code { font: .82em ui-monospace, "Liberation Mono", monospace; }
[data-slot] { display: grid; gap: 1.25rem; align-content: start; }
[data-slot], .ad { border-radius: .5rem; } [data-slot]:empty, .none { background: var(--line); }
.hero { aspect-ratio: 4; } .stack { aspect-ratio: 20 / 27.6; }
.none { display: grid; place-items: center; }
.ad { position: relative; display: flex; flex-direction: column; justify-content: flex-end; gap: .2rem; overflow: hidden;
  aspect-ratio: 3 / 2; padding: 1.1rem; color: #fff; text-decoration: none; }
.hero { align-content: stretch; } .hero .ad { aspect-ratio: auto; justify-content: center; padding: 0 2.5rem; }
.ad img { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: cover; object-position: right; }
.ad > :not(img) { position: relative; max-width: 55%; }
.ad b { font-size: 1.5rem; line-height: 1.15; } .hero .ad b { font-size: 2.1rem; } .ad small { font-size: .95rem; line-height: 1.35; }
@media (max-width: 52rem) { .hero { aspect-ratio: 2; } .hero .ad { padding: 0 1.25rem; } .hero .ad b { font-size: 1.5rem; } }
.ad u { align-self: flex-start; margin-top: .6rem; padding: .3rem .85rem; border-radius: 2rem; color: #2b2622; background: #fff;
  font: 600 14px/1.5 system-ui, sans-serif; text-decoration: none; }
.ad i { position: absolute !important; top: .5rem; right: .5rem; padding: 0 .4rem; border-radius: .25rem;
  font: 11px/1.6 system-ui, sans-serif; background: #0008; }
footer { padding: 1rem 0 2.5rem; border-top: 1px solid var(--line); }
"""


def _page(title: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><link rel="stylesheet" href="/sample/page.css"></head>
<body><div class="page">{body}</div></body></html>
"""


MAGAZINE = _page(
    "The Hedgerow: a sample page of Adloom",
    f"""
<header><h1><a href="/sample">The Hedgerow</a></h1>
<p class="line small"><span>A magazine for people who walk slowly</span><span>A sample page of Adloom</span></p></header>
<div class="hero" data-slot="{HERO_SLUG}"></div>
<div class="columns"><article><h2>What the hedge knows about November</h2>
<p class="small">By nobody in particular · three minutes</p>
<p class="first">The hedge has seen more Novembers than any of us. It keeps the wind from the field, the robin from
the cat, and its thoughts to itself. It does not ask who walks past, nor follow them home.</p>
<p>Neither does this page. It has two slots. Each asked for ads by its own name,
<code>/banners/serve/{HERO_SLUG}</code> and <code>/banners/serve/{ASIDE_SLUG}</code>, and said nothing about you.
The answers came from memory, and every ad that you see has been counted once. A click on one of them counts too.</p>
<p>Open the network view of your browser to see all of it. Then change what is shown: the README's
«Your first ad» makes a placement, a banner and a campaign in a minute.</p></article>
<aside class="stack" data-slot="{ASIDE_SLUG}"></aside></div>
<footer class="small">The magazine, the shop and their pictures are part of Adloom. <code>adloom up --empty</code> starts
without them.</footer><script src="/sample/page.js"></script>""",
)

# Elements and properties only, never markup: what a banner says cannot become script.
SCRIPT = """"use strict";
const made = (tag, text) => Object.assign(document.createElement(tag), { textContent: text || "" });
const ad = (banner) => {
  const link = Object.assign(made("a"), { className: "ad", href: banner.clickUrl, rel: "sponsored" });
  link.style.backgroundColor = banner.bgColor || "";
  const image = Object.assign(new Image(), { src: banner.primaryImageUrl, alt: banner.primaryImageAlt || "" });
  link.append(image, made("b", banner.headline), made("small", banner.subheadline), made("u", banner.ctaLabel), made("i", "Ad"));
  new Image().src = banner.impressionUrl;
  return link;
};
for (const slot of document.querySelectorAll("[data-slot]")) {
  fetch("/banners/serve/" + slot.dataset.slot).then((answer) => answer.json()).then(({ banners = [] }) => {
    slot.append(...banners.map(ad));
    if (!banners.length) slot.append(Object.assign(made("div", "No ad here just now"), { className: "none small" }));
  });
}
"""

SHOP = _page(
    "Meadow &amp; Oak: a sample shop of Adloom",
    """
<header><h1><a href="/sample/shop">Meadow &amp; Oak</a></h1>
<p class="line small"><span>Things for cold evenings</span><span>A sample shop of Adloom</span></p></header>
<div class="columns"><article><h2>Your click is in the ledger</h2>
<p>This is where the sample's ads lead. Look at the address: it says which ad you came from, and nothing about you.</p>
<p><a href="/sample">Back to the magazine</a></p></article></div>""",
)


def sample_routes() -> list[HotRoute]:
    """List the sample's routes."""
    pages = {
        "/sample": _answer(MAGAZINE, b"text/html; charset=utf-8"),
        "/sample/shop": _answer(SHOP, b"text/html; charset=utf-8"),
        "/sample/page.css": _answer(STYLE, b"text/css; charset=utf-8"),
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
