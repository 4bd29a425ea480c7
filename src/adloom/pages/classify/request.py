"""The request to classify a page: what the crawler, a reader's tag and control put on one queue."""

# pure

from datetime import datetime
from hashlib import blake2b
from typing import Final

import msgspec

from adloom.core.ids import SiteId
from adloom.pages.model import PageSource

TITLE_CHARACTERS_MAX: Final = 500
DESCRIPTION_CHARACTERS_MAX: Final = 1_000
TEXT_CHARACTERS_MAX: Final = 8_000  # A language model reads so much; the built-in classifier reads 1,200.
LANGUAGE_CHARACTERS_MAX: Final = 8
HASH_BYTES: Final = 16


class ClassifyRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page's text, to be classified; `url` is normalised, and `etag` and `last_modified` are the server's.

    `is_kept`: the text was not read now but kept from the last time, to be classified by a newer version.
    """

    site_id: SiteId
    url: str
    title: str = ""
    description: str = ""
    text: str = ""
    language: str | None = None
    source: PageSource
    content_hash: bytes
    etag: str | None = None
    last_modified: str | None = None
    requested_at: datetime
    is_kept: bool = False


def make_request(  # noqa: PLR0913 - the fields of the request
    *,
    site_id: SiteId,
    url: str,
    source: PageSource,
    now: datetime,
    title: str | None = None,
    description: str | None = None,
    text: str | None = None,
    language: str | None = None,
    etag: str | None = None,
    last_modified: str | None = None,
) -> ClassifyRequest:
    """Make a request whose hash is of the whole text, and whose text is cut to what classifiers read."""
    title, description, text = _tidy(title), _tidy(description), _tidy(text)
    return ClassifyRequest(
        site_id=site_id,
        url=url,
        title=title[:TITLE_CHARACTERS_MAX],
        description=description[:DESCRIPTION_CHARACTERS_MAX],
        text=text[:TEXT_CHARACTERS_MAX],
        language=language[:LANGUAGE_CHARACTERS_MAX] if language else None,
        source=source,
        content_hash=hash_content(title, description, text),
        etag=etag,
        last_modified=last_modified,
        requested_at=now,
    )


def hash_content(title: str | None, description: str | None, text: str | None) -> bytes:
    """Hash what a page says; other spaces and line ends do not make it another text."""
    digest = blake2b(digest_size=HASH_BYTES)
    for part in (title, description, text):
        digest.update(_tidy(part).encode("utf-8"))
        digest.update(b"\0")
    return digest.digest()


def _tidy(text: str | None) -> str:
    """Join by single spaces; what UTF-8 and PostgreSQL cannot store becomes a question mark, and a space."""
    if not text:
        return ""
    joined = " ".join(text.replace("\0", " ").split())
    return joined if joined.isascii() else joined.encode("utf-8", "replace").decode("utf-8")
