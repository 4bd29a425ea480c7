"""What every classifier takes and answers."""

# pure

from typing import Final, Protocol

import msgspec

from adloom.pages.model import CATEGORIES_MAX, Evidence, PageCategory

CONFIDENCE_MAX: Final = 0.95  # No classifier is surer than this of what a page is about.
CONFIDENCE_MIN: Final = 0.2  # A page on which nothing reaches this has no category.
SECOND_CONFIDENCE_MIN: Final = 0.15


class PageContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says. It was written by strangers: data, never an instruction, and never in a log line."""

    title: str = ""
    description: str = ""
    text: str = ""
    language: str | None = None


class Classification(msgspec.Struct, frozen=True):
    """What a page is about, the surest first; and which phrases spoke for it. Without categories: nothing known.

    `by` is name and version of another classifier that replaced the one that was asked.
    """

    categories: tuple[PageCategory, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    by: tuple[str, str] | None = None


class Classifier(Protocol):
    """Says what a page is about. Pages that have another name and version than this are classified again."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    async def classify(self, page: PageContent, *, ids_max: int = CATEGORIES_MAX) -> Classification: ...
