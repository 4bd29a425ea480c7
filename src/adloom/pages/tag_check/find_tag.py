"""Looks for the tag in the HTML of a page."""

# pure

import contextlib
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlsplit

import msgspec

SLUGS_NAMED_MAX: Final = 10


class TagLook(msgspec.Struct, frozen=True):
    """What a page has of the tag."""

    has_script: bool
    slugs: tuple[str, ...]


class _TagParser(HTMLParser):
    def __init__(self, script_path: str) -> None:
        super().__init__()
        self._script_path = script_path
        self.has_script = False
        self.slugs: dict[str, None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "script" and (values.get("src") or "").partition("?")[0].endswith(self._script_path):
            self.has_script = True
        if slug := values.get("data-adloom"):
            self.slugs[slug.strip()] = None


def look_for_tag(page: str, script_url: str) -> TagLook:
    """Return what a page has of the tag; the script may come from any host, since proxies rename ours."""
    parser = _TagParser(urlsplit(script_url).path)
    # What the parser cannot go on from: all before it was looked at.
    with contextlib.suppress(AssertionError):
        parser.feed(page)
    return TagLook(parser.has_script, tuple(parser.slugs))


def find_fault(look: TagLook, slug: str, script_url: str) -> str | None:
    """Say what is wrong, or return None where the tag of a placement is complete."""
    if not look.has_script and not look.slugs:
        return (
            "The page has nothing of the tag: paste both lines. "
            "Where script in the browser puts them there, this check cannot see them."
        )
    if not look.has_script:
        return f'The page has places for ads, but no script: add <script async src="{script_url}"></script>.'
    if slug not in look.slugs:
        others = ", ".join(look.slugs[:SLUGS_NAMED_MAX])
        has = f"; it has {others}" if others else ""
        return f'The script is there, but no element has data-adloom="{slug}"{has}.'
    return None
