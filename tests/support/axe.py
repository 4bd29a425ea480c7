"""axe-core on a page that is open: what people who do not see, hear or point well would stumble on.

Colours take axe three quarters of its time, and there are a few dozen pairs of them in all pages: one text of each kind is
enough for a walk.
"""

import json
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any, Literal

from playwright.sync_api import Page

# The rules of WCAG 2.2 up to AA, and what is good practice beyond it.
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
COLOURS = ("color-contrast", "link-in-text-block")
# Colours on their way to others would be measured halfway, and of what is sticky or in front of a page that is held
# axe does not find the background.
STILL = """*, ::before, ::after { transition: none !important; animation: none !important; }
.al-sticky, .al-chosen { position: static !important; }
.q-body--prevent-scroll { position: static !important; }
.q-dialog__inner, .q-dialog__backdrop { position: absolute !important; }"""
# Runs before a page's own scripts, and adds the style as a script can: policies of pages forbid further <style> elements.
# Sent with each page, axe would take a tenth of all that a browser does for it.
PREPARE = """if (window === top) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(%s);
  document.adoptedStyleSheets.push(sheet);
  %s
}"""
# Keeps one element of each kind that is not known, and returns the kinds. Whether a text can be read follows from its
# colour and size, what is behind it and, for a link, the text around it.
MEET = """async ([within, known]) => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const backs = new Map();
  const backOf = (element) => {
    if (!element) return "";
    if (!backs.has(element)) {
      const { backgroundColor: colour, backgroundImage: picture, opacity } = getComputedStyle(element);
      const isThrough = colour === "rgba(0, 0, 0, 0)" && picture === "none" && opacity === "1";
      const own = isThrough ? "" : `${colour} ${picture} ${opacity} `;
      backs.set(element, own + (own && !colour.startsWith("rgba") && opacity === "1" ? "" : backOf(element.parentElement)));
    }
    return backs.get(element);
  };
  const kindOf = (element) => {
    const { color, fontSize, fontWeight, textDecorationLine } = getComputedStyle(element);
    const around = element.closest("a") ? `${textDecorationLine} ${getComputedStyle(element.parentElement).color}` : "";
    return [color, fontSize, fontWeight, around, backOf(element)].join();
  };
  const hasText = (element) => element.matches("input, textarea, select") ||
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const seen = new Set(known);
  const fresh = new Map();
  for (const element of document.querySelectorAll(`${within} *`)) {
    if (!hasText(element) || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const kind = kindOf(element);
    if (!seen.has(kind) && !fresh.has(kind)) fresh.set(kind, element);
  }
  globalThis.axeFresh = [...fresh.values()];
  return [...fresh.keys()];
}"""
# Frames are pages of their own: previews of banners that somebody else has made.
RUN = """async ([context, runOnly, rules]) => {
  const options = { runOnly, rules, iframes: false, preload: false, resultTypes: ["violations"] };
  // Playwright would wait for a script until the test's time is up.
  const late = new Promise((_, fail) => setTimeout(() => fail(new Error("axe has not ended after a minute")), 60_000));
  const run = axe.run(context ?? { include: axeFresh.filter((one) => one.isConnected) }, options);
  const { violations } = await Promise.race([run, late]);
  return violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, nodes: nodes.map(
    ({ html, failureSummary, target }) => ({ html, failureSummary, target: target.join(" ") })) }));
}"""
SHOWN_MAX = 3


class BarrierFinder:
    """Finds what is wrong with the pages that a browser opens from now on, one after another."""

    def __init__(self, page: Page) -> None:
        script = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        page.add_init_script(PREPARE % (json.dumps(STILL), script))
        self._page = page
        self.themes: list[Literal["light", "dark"]] = ["light", "dark"]  # The first is that of the page.
        self._kinds: set[str] = set()  # Of texts whose colours were looked at.

    def find(self, within: str = "html", *, without: Sequence[str] = ()) -> Iterator[str]:
        """Yield what is wrong with a page: all rules, and its colours in both themes.

        `within` and `without` are selectors: what is the same on all pages need not be looked at on each.
        """
        context = {"include": [[within]], "exclude": [[one] for one in without]}
        every = {"type": "tag", "values": TAGS}
        yield from self._run("", [context, every, {rule: {"enabled": False} for rule in COLOURS}])
        for theme in self.themes:
            if theme != self.themes[0]:
                self._page.emulate_media(color_scheme=theme)
            fresh: list[str] = self._page.evaluate(MEET, [within, list(self._kinds)])
            self._kinds.update(fresh)
            if fresh:
                yield from self._run(
                    f"in the {theme} theme: ", [None, {"type": "rule", "values": COLOURS}, {}]
                )
        self.themes.reverse()  # The next page begins as this one ends: each change is a layout.

    def _run(self, where: str, arguments: list[Any]) -> Iterator[str]:
        found: list[dict[str, Any]] = self._page.evaluate(RUN, arguments)
        for rule in found:
            nodes = rule["nodes"]
            yield f"{where}{rule['id']} ({rule['impact']}, {len(nodes)} times): {rule['help']}" + "".join(
                f"\n    {node['target']}\n    {node['html'][:300]}\n    {node['failureSummary']}"
                for node in nodes[:SHOWN_MAX]
            )
