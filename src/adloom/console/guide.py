"""The guide inside the console: its chapters, made from the Markdown that comes with the package, and which one explains a page."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import markdown2  # NiceGUI brings it.
import msgspec

import adloom

GUIDE: Final = "/console/guide"
FRONT: Final = "README"
# In the package, or beside it in a checkout.
FOLDERS: Final = (
    Path(adloom.__file__).parent / "guide",
    Path(adloom.__file__).parents[2] / "docs" / "guide",
)
EXTRAS: Final = ["tables", "code-friendly", "cuddled-lists", "fenced-code-blocks"]
# The chapter of each page, by the beginning of its path: the longest that fits counts. After `?`, that of a tab.
HELP: Final[Mapping[str, str]] = {
    "/console": "console#overview",
    "/console/account": "accounts-and-access#second-factor",
    "/console/advertisers": "campaigns#advertisers",
    "/console/approvals": "console#approvals",
    "/console/auctions": "console#auctions",
    "/console/banners": "banners",
    "/console/banners?schedule": "schedules",
    "/console/banners?caps": "auctions#frequency-caps",
    "/console/budgets": "budgets",
    "/console/calibration": "scoring",
    "/console/campaigns": "campaigns",
    "/console/campaigns?bidding": "bidding",
    "/console/campaigns?contextual": "contextual",
    "/console/campaigns?schedule": "schedules",
    "/console/campaigns?targeting": "targeting",
    "/console/campaigns?what-if": "what-if",
    "/console/first-campaign": "console#my-first-campaign",
    "/console/guide": "README",
    "/console/history": "history",
    "/console/jobs": "jobs",
    "/console/placements": "placements",
    "/console/publishers": "publishers",
    "/console/reports": "statistics",
    "/console/reports/ads": "stats-sync",
    "/console/requests": "campaigns#consent-of-publishers",
    "/console/sites": "sites",
    "/console/system": "operating",
    "/console/system?accounts": "accounts-and-access",
    "/console/system?keys": "accounts-and-access#api-keys",
    "/console/system?transfer": "import-and-export#in-the-console",
    "/console/why": "console#why",
}

_FENCE: Final = re.compile(r"^( *```)\S.*$", re.MULTILINE)
_IMAGE: Final = re.compile(r"<p><img [^>]*></p>|<img [^>]*>")
_HEADING: Final = re.compile(r"<h([1-6])>(.*?)</h\1>")
_LINK: Final = re.compile(r'<a href="([^"]*)">(.*?)</a>', re.DOTALL)
_TITLE: Final = re.compile(r"<h1[^>]*>(.*?)</h1>")
_TAG: Final = re.compile(r"<[^>]+>")
_CHAPTER_LINK: Final = re.compile(r"([\w-]+)\.md(#[\w-]+)?")


class Chapter(msgspec.Struct, frozen=True):
    """A page of the guide as HTML, with the names of its headings."""

    title: str
    html: str
    anchors: frozenset[str]


def find_help(path: str, tab: str = "") -> str:
    """Return the address of the chapter that explains a page."""
    fits = [one for one in HELP if path == one or path.startswith(f"{one}/")]
    page = max(fits, key=len, default="/console")
    name, hash_sign, anchor = HELP.get(f"{page}?{tab}", HELP[page]).partition("#")
    return f"{name_chapter(name)}{hash_sign}{anchor}"


def name_chapter(name: str) -> str:
    return GUIDE if name == FRONT else f"{GUIDE}/{name}"


@functools.cache
def list_chapters() -> Mapping[str, Path]:
    """Return the files of the chapters, by name."""
    folder = next((one for one in FOLDERS if one.is_dir()), None)
    return {} if folder is None else {path.stem: path for path in sorted(folder.glob("*.md"))}


@functools.cache
def read_chapter(name: str) -> Chapter | None:
    """Return a chapter, or None if there is none of this name."""
    path = list_chapters().get(name)
    return None if path is None else render(path.read_text(encoding="utf-8"))


def render(text: str) -> Chapter:
    """Make HTML of a chapter. Its text is ours, so nothing is escaped that Markdown leaves as it is."""
    made = str(markdown2.markdown(_FENCE.sub(r"\1", text), extras=EXTRAS))  # pyright: ignore[reportUnknownMemberType]
    made = _LINK.sub(_rewrite_link, _IMAGE.sub("", made))
    anchors: list[str] = []

    def name_heading(found: re.Match[str]) -> str:
        anchors.append(_name_anchor(found[2]))
        return f'<h{found[1]} id="{anchors[-1]}">{found[2]}</h{found[1]}>'

    made = _HEADING.sub(name_heading, made)
    first = _TITLE.search(made)
    return Chapter("Guide" if first is None else _TAG.sub("", first[1]), made, frozenset(anchors))


def _rewrite_link(found: re.Match[str]) -> str:
    """Lead to chapters here, and elsewhere in a new tab; what is not in the package stays as text."""
    target, text = found[1], found[2]
    chapter = _CHAPTER_LINK.fullmatch(target)
    if chapter is not None and chapter[1] in list_chapters():
        return f'<a href="{name_chapter(chapter[1])}{chapter[2] or ""}">{text}</a>'
    if target.startswith("#"):
        return found[0]
    if target.startswith(("http://", "https://")):
        return f'<a href="{target}" target="_blank" rel="noopener noreferrer">{text}</a>'
    return text


def _name_anchor(title: str) -> str:
    """Name a heading as GitHub does."""
    plain = _TAG.sub("", title).replace("&amp;", "&").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
