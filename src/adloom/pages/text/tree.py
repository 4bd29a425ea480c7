"""Builds the tree of a page within bounds, whatever the page sends.

The parser's own builder appends an element's attributes one after the other, each by a walk to the last: 100,000
of them would take minutes. Here a page's tree is built from the parser's events, and what is beyond the bounds is
left out: the first part of a page says what it is about.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, cast

from lxml import etree as _untyped_etree  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
from lxml import html as _untyped_html

ELEMENTS_MAX: Final = 8_000  # Extraction takes a second for so many.
DEPTH_MAX: Final = 200
ATTRIBUTES_MAX: Final = 50
VALUE_CHARACTERS_MAX: Final = 2_048
TEXT_CHARACTERS_MAX: Final = 100_000

# Nothing below these is text for readers.
_DROPPED: Final = frozenset(
    ["script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "select", "textarea"]
)

# lxml has no types.
_etree = cast("Any", _untyped_etree)
_make_element: Final = cast("Any", _untyped_html).HTMLParser(encoding="utf-8").makeelement
HtmlError: Final[type[Exception]] = _etree.LxmlError


class HtmlElement(Protocol):
    """An element of a page, as far as we read it."""

    def get(self, name: str) -> str | None: ...

    def iter(self, tag: str) -> "Iterator[HtmlElement]": ...

    def find(self, tag: str) -> "HtmlElement | None": ...

    def itertext(self) -> Iterator[str]: ...

    def text_content(self) -> str: ...


class BoundedBuilder:
    """Takes the parser's events and builds the tree."""

    def __init__(self) -> None:
        self._builder = _etree.TreeBuilder(element_factory=_make_element)
        self._is_built: list[bool] = []
        self._elements = 0
        self._depth = 0
        self._characters = 0
        self._dropped_depth = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        is_dropped = bool(self._dropped_depth) or tag in _DROPPED
        if is_dropped:
            self._dropped_depth += 1
        is_built = not is_dropped and self._elements < ELEMENTS_MAX and self._depth < DEPTH_MAX
        self._is_built.append(is_built)
        if is_built:
            self._elements += 1
            self._depth += 1
            self._builder.start(tag, _limit(attributes))

    def end(self, tag: str) -> None:
        if not self._is_built:
            return
        if self._is_built.pop():
            self._depth -= 1
            self._builder.end(tag)
        elif self._dropped_depth:
            self._dropped_depth -= 1

    def data(self, text: str) -> None:
        # Text outside of the root has no place in a tree.
        if self._dropped_depth or not self._depth or self._characters > TEXT_CHARACTERS_MAX:
            return
        self._characters += len(text)
        self._builder.data(text[:TEXT_CHARACTERS_MAX])

    def close(self) -> HtmlElement | None:
        if not self._elements:
            return None
        return cast("HtmlElement", self._builder.close())


def parse_tree(text: str) -> HtmlElement | None:
    """Parse a page; None where it has no element at all."""
    parser = _etree.HTMLParser(encoding="utf-8", target=BoundedBuilder())
    body = text.replace("\0", "").encode("utf-8", "replace")
    return cast("HtmlElement | None", _etree.fromstring(body, parser=parser))


def _limit(attributes: Mapping[str, str]) -> dict[str, str]:
    pairs = list(attributes.items())[:ATTRIBUTES_MAX]
    return {name: value[:VALUE_CHARACTERS_MAX] for name, value in pairs}
