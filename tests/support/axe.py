"""axe-core on a page that is open: what people who do not see, hear or point well would stumble on."""

import functools
from collections.abc import Iterator
from importlib import resources
from typing import Any, Literal

from playwright.sync_api import Page

Theme = Literal["dark", "light"]

# The rules of WCAG 2.2 up to AA, and what is good practice beyond it.
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
COLOURS = ("color-contrast", "link-in-text-block")
# Colours on their way to others would be measured halfway, and of what is sticky axe does not find the background.
STILL = """*, ::before, ::after { transition: none !important; animation: none !important; }
.al-sticky { position: static !important; }"""
# As a script does it, because policies of pages forbid further <style> elements.
HOLD = """(text) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets.push(sheet);
}"""
# Frames are pages of their own: previews of banners that somebody else has made.
RUN = """async (runOnly) => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const { violations } = await axe.run(document, { runOnly, iframes: false, preload: false, resultTypes: ["violations"] });
  return violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, nodes: nodes.map(
    ({ html, failureSummary, target }) => ({ html, failureSummary, target: target.join(" ") })) }));
}"""
SHOWN_MAX = 3


@functools.cache
def _script() -> str:
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def find_barriers(page: Page) -> Iterator[str]:
    """Yield what is wrong with a page: all rules in the light theme, and its colours in the dark one."""
    page.evaluate(HOLD, STILL)
    page.evaluate(_script())
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        yield from (f"in the {theme} theme: {barrier}" for barrier in _look(page, theme))
    page.emulate_media(color_scheme="light")


def _look(page: Page, theme: Theme) -> Iterator[str]:
    # What is not a colour is the same in both.
    wanted = {"type": "tag", "values": TAGS} if theme == "light" else {"type": "rule", "values": COLOURS}
    found: list[dict[str, Any]] = page.evaluate(RUN, wanted)
    for rule in found:
        nodes = rule["nodes"]
        yield f"{rule['id']} ({rule['impact']}, {len(nodes)} times): {rule['help']}" + "".join(
            f"\n    {node['target']}\n    {node['html'][:300]}\n    {node['failureSummary']}"
            for node in nodes[:SHOWN_MAX]
        )
