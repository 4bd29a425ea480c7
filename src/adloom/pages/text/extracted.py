"""What is read from a page; without the libraries that read it, which take long to load."""

from enum import StrEnum
from typing import Final

import msgspec

TEXT_CHARACTERS_MIN: Final = 80  # A page with less is empty, or made by its scripts.


class UnreadablePage(StrEnum):
    """Why nothing could be read from a page."""

    EMPTY = "empty"
    NOT_HTML = "not_html"
    TOO_LARGE = "too_large"
    BROKEN = "broken"


class ExtractedPage(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says; `links` and `canonical` are absolute addresses."""

    title: str
    description: str
    text: str
    language: str | None
    content_hash: bytes
    canonical: str | None = None
    links: tuple[str, ...] = ()
    is_noindex: bool = False
    is_nofollow: bool = False

    @property
    def has_text(self) -> bool:
        """Whether there is enough to classify; a page without is often made by scripts in the browser."""
        return len(self.text) >= TEXT_CHARACTERS_MIN
