"""Cuts a page into chunks that the encoder understands well: about a sentence or two each."""

# pure

import re
from typing import Final

from adloom.pages.classify.protocol import PageContent

TEXT_CHARACTERS_READ: Final = 1_200
CHUNK_CHARACTERS: Final = 160
CHUNK_CHARACTERS_MAX: Final = 320
# A sentence is added to the chunk before it while both are not longer than this.
_FULL: Final = CHUNK_CHARACTERS * 5 // 4
# The text is about so long when a mark ends a sentence; Chinese and Japanese write no space after theirs.
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*")  # noqa: RUF001 - they end sentences
_ENDS: Final = (".", "!", "?", "…", "。", "！", "？")  # noqa: RUF001 - likewise


def read_page(page: PageContent) -> str:
    """Join title, description and text, as much of them as is read."""
    parts = [part.strip() for part in (page.title, page.description, page.text) if part.strip()]
    if len(parts) > 1 and parts[1] == parts[0]:
        del parts[1]
    sentences = [part if part.endswith(_ENDS) else f"{part}." for part in parts]
    return " ".join(sentences)[:TEXT_CHARACTERS_READ].strip()


def cut_chunks(text: str) -> list[str]:
    """Cut at sentence ends into chunks of about 160 characters; a sentence that is too long is cut at spaces."""
    chunks: list[str] = []
    chunk = ""
    for sentence in _SENTENCE_END.split(text):
        for piece in _cut_long(sentence.strip()):
            if chunk and len(chunk) + len(piece) >= _FULL:
                chunks.append(chunk)
                chunk = piece
            else:
                chunk = f"{chunk} {piece}" if chunk else piece
    if chunk:
        chunks.append(chunk)
    return chunks


def _cut_long(sentence: str) -> list[str]:
    pieces: list[str] = []
    while len(sentence) > CHUNK_CHARACTERS_MAX:
        at = sentence.rfind(" ", 1, CHUNK_CHARACTERS)
        at = at if at > 0 else CHUNK_CHARACTERS
        pieces.append(sentence[:at])
        sentence = sentence[at:].strip()
    return [*pieces, sentence] if sentence else pieces
