"""Classifies a page by how near its sentences are to the seed phrases of each category.

The score of a node below a root is, for each chunk, the mean of its 3 most similar phrases, and then the mean over
the two thirds of the chunks where that is highest: the rest is often about something else, or no article at all. The
score of a root is the same with 8 of its own phrases, and to a fifth that of its best node. Scores become shares by a
softmax whose temperature was fitted on labelled texts (`tests/pages/classify/data/fitting-texts.tsv`), and
p(node) = p(root) · p(node | root), so that no node is surer than its root.

The prior decides between roots that a page resembles. It must not make a category of a page that resembles none: a
root counts only if its score is above the middle of all roots' by a margin. And a page that is nearer to notices (of
cookies, of a page that is not there, of a log-in) than to any category is about nothing.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from adloom.pages.classify.embedded.chunks import cut_chunks, read_page
from adloom.pages.classify.embedded.encoder import Encoder, SentenceEncoder, Vectors
from adloom.pages.classify.embedded.phrases import PRIOR, SeedPhrases, load_phrases
from adloom.pages.classify.embedded.seed_vectors import load_seed_vectors
from adloom.pages.classify.protocol import (
    CONFIDENCE_MAX,
    CONFIDENCE_MIN,
    SECOND_CONFIDENCE_MIN,
    Classification,
    PageContent,
)
from adloom.pages.model import CATEGORIES_MAX, Evidence, PageCategory
from adloom.taxonomy.iab import load_content

NAME: Final = "embedded"
METHOD: Final = 3  # Raised when the same phrases would give other answers.

SCALE: Final = 15.0
ROOT_PHRASES_COMPARED: Final = 8
NODE_PHRASES_COMPARED: Final = 3
BEST_NODE_WEIGHT: Final = 0.2
ROOTS_LOOKED_INTO: Final = 8  # The nodes of the others are not compared: that takes as long as all the rest.
ROOT_TEMPERATURE: Final = 4.0
NODE_TEMPERATURE: Final = 4.0
# All texts that the temperature was fitted on have 0.067 and more; notices and essays of two chunks up to 0.058.
ROOT_MARGIN_MIN: Final = 0.055
# Chance reaches further in one chunk: a quarter of notices pass this, and 5 % of headlines do not.
ROOT_MARGIN_SHORT: Final = 0.07
# No text of the benchmark reaches this, of which some are about passwords and servers; three quarters of notices do.
NOTICE_MARGIN: Final = 0.12
NODE_SHARE_MIN: Final = 0.5  # Below this the root is the better answer.
LETTERS_MIN: Final = 20  # Less is no sentence: only the prior would decide.
EVIDENCE_PER_CATEGORY: Final = 3
EXCERPT_CHARACTERS_MAX: Final = 240


class _PhraseTable:
    """The phrases of categories, one category after the other, and their vectors."""

    def __init__(
        self, phrases: Mapping[str, Sequence[str]], places: Mapping[str, int], vectors: Vectors
    ) -> None:
        self.ids = tuple(phrases)
        self.phrases = [text for group in phrases.values() for text in group]
        self.vectors = np.ascontiguousarray(vectors[[places[text] for text in self.phrases]])
        ends = np.cumsum([len(group) for group in phrases.values()]).tolist()
        self.bounds = [slice(int(start), int(end)) for start, end in zip([0, *ends], ends, strict=False)]
        # A row of columns for each category; those with fewer phrases than the largest repeat one that is never near.
        width = max(len(group) for group in phrases.values())
        self._columns = np.full((len(self.ids), width), len(self.phrases), np.intp)
        for row, bounds in zip(self._columns, self.bounds, strict=True):
            row[: bounds.stop - bounds.start] = np.arange(bounds.start, bounds.stop)

    def compare(self, encoded: Vectors) -> Vectors:
        """Return the similarity of each chunk with each phrase, and -1 in a last column."""
        similarities = np.full((len(encoded), len(self.phrases) + 1), -1, np.float32)
        # In this order the product of a large and a small matrix takes half the time.
        similarities[:, :-1] = (self.vectors @ encoded.T).T
        return similarities

    def score(self, similarities: Vectors, compared: int) -> Vectors:
        """Score each category: the mean over its best chunks."""
        return _average_best(self.score_chunks(similarities, compared))

    def score_chunks(self, similarities: Vectors, compared: int) -> Vectors:
        """Score each category by each chunk: the mean of its most similar phrases."""
        of_phrases = similarities.take(self._columns, axis=1)
        of_phrases.partition(of_phrases.shape[2] - compared, axis=2)
        return of_phrases[:, :, -compared:].mean(axis=2)

    def explain(self, place: int, chunks: Sequence[str], similarities: Vectors) -> list[Evidence]:
        """Find the phrases that spoke most for a category, each with the chunk that it resembles most."""
        rows = self.bounds[place]
        nearest: Vectors = similarities[:, rows].max(axis=0)
        found: list[Evidence] = []
        for row in _order(nearest)[:EVIDENCE_PER_CATEGORY]:
            chunk = int(np.argmax(similarities[:, rows.start + row]))
            found.append(
                Evidence(
                    category=self.ids[place],
                    phrase=self.phrases[rows.start + row],
                    excerpt=chunks[chunk][:EXCERPT_CHARACTERS_MAX],
                    similarity=round(float(nearest[row]), 3),
                )
            )
        return found


class _ComparedNodes(msgspec.Struct, frozen=True):
    """A page compared with the nodes below one root: their scores, and the similarities behind them."""

    table: _PhraseTable
    similarities: Vectors
    scores: Vectors
    nearest: float  # The mean over all chunks, each by the node that it is most like.


class _ComparedPage(msgspec.Struct, frozen=True):
    """A page compared with the phrases of all roots, and of the nodes of the likeliest."""

    chunks: list[str]
    encoded: Vectors
    similarities: Vectors
    margins: Vectors
    shares: Vectors
    nodes: dict[str, _ComparedNodes]
    is_notice: bool


class EmbeddedClassifier:
    """Needs about 120 MB beside its process, and 15 ms for a page of 600 characters."""

    name = NAME

    def __init__(
        self,
        phrases: SeedPhrases,
        vectors: Vectors,
        encoder: Encoder,
        *,
        prior: Mapping[str, float] = PRIOR,
    ) -> None:
        self._encoder = encoder
        places = {phrase: place for place, phrase in enumerate(phrases.list_all())}
        self._roots = _PhraseTable(phrases.of_roots, places, vectors)
        by_root: dict[str, dict[str, Sequence[str]]] = {}
        for node_id, texts in phrases.of_nodes.items():
            by_root.setdefault(load_content().list_ancestors(node_id)[-1], {})[node_id] = texts
        self._nodes = {root: _PhraseTable(nodes, places, vectors) for root, nodes in by_root.items()}
        self._notices = _PhraseTable(phrases.of_notices, places, vectors)
        self._prior = np.array([prior.get(root, 0.0) for root in self._roots.ids], np.float32)
        self.version = _describe_version(phrases, encoder, prior)
        # One: the encoder remembers tokens, and each thread would have memory of its own.
        self._thread = ThreadPoolExecutor(1, "classify")

    async def classify(self, page: PageContent, *, ids_max: int = CATEGORIES_MAX) -> Classification:
        """Classify in a thread, so that the process goes on answering."""
        work = partial(self.classify_now, page, ids_max=ids_max)
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def classify_now(self, page: PageContent, *, ids_max: int = CATEGORIES_MAX) -> Classification:
        seen = self._compare(page)
        if seen is None or seen.is_notice:
            return Classification()
        categories: list[PageCategory] = []
        evidence: list[Evidence] = []
        margin = ROOT_MARGIN_MIN if len(seen.chunks) > 1 else ROOT_MARGIN_SHORT
        places = [place for place in _order(seen.shares) if seen.margins[place] >= margin]
        for place, following in zip_longest(places[:ids_max], places[1 : ids_max + 1]):
            share = float(seen.shares[place])
            least = SECOND_CONFIDENCE_MIN if categories else CONFIDENCE_MIN
            if share < least:
                break
            nodes = seen.nodes.get(self._roots.ids[place])
            node, node_share = _find_best(nodes.scores) if nodes is not None else (0, 0.0)
            # The surest is first: where the next root is surer than the node, the root is the answer.
            least = max(least, 0.0 if following is None else float(seen.shares[following]))
            if nodes is not None and node_share >= NODE_SHARE_MIN and share * node_share >= least:
                categories.append(PageCategory(nodes.table.ids[node], round(share * node_share, 4)))
                evidence += nodes.table.explain(node, seen.chunks, nodes.similarities)
            else:
                categories.append(PageCategory(self._roots.ids[place], round(share, 4)))
                evidence += self._roots.explain(place, seen.chunks, seen.similarities)
        return Classification(tuple(categories), tuple(evidence))

    def rank_roots(self, page: PageContent) -> list[PageCategory]:
        """Return the share of every root, the likeliest first."""
        seen = self._compare(page)
        if seen is None:
            return []
        return [
            PageCategory(self._roots.ids[place], float(seen.shares[place])) for place in _order(seen.shares)
        ]

    def rank_nodes(self, page: PageContent, root_id: str) -> list[PageCategory]:
        """Return the share of every node directly below a root, given that the page is about the root."""
        seen = self._compare(page)
        nodes = self._compare_nodes(root_id, seen.encoded) if seen is not None else None
        if nodes is None:
            return []
        shares = _share_nodes(nodes.scores)
        return [PageCategory(nodes.table.ids[place], float(shares[place])) for place in _order(shares)]

    def _compare(self, page: PageContent) -> _ComparedPage | None:
        text = read_page(page)
        if sum(map(str.isalpha, text)) < LETTERS_MIN:
            return None
        chunks = cut_chunks(text)
        encoded = self._encoder.encode(chunks)
        similarities = self._roots.compare(encoded)
        own = self._roots.score(similarities, ROOT_PHRASES_COMPARED)
        # A root without nodes, or too unlikely to look into, has its own nearest phrases instead.
        best = self._roots.score(similarities, NODE_PHRASES_COMPARED)
        nearest = float(best.max())
        nodes: dict[str, _ComparedNodes] = {}
        for place in _order(SCALE * own + self._prior)[:ROOTS_LOOKED_INTO]:
            below = self._compare_nodes(self._roots.ids[place], encoded)
            if below is not None:
                nodes[self._roots.ids[place]] = below
                best[place] = below.scores.max()
                nearest = max(nearest, below.nearest)
        scores = (1 - BEST_NODE_WEIGHT) * own + BEST_NODE_WEIGHT * best
        shares = _compute_softmax(ROOT_TEMPERATURE * (SCALE * scores + self._prior))
        margins = own - np.median(own)
        # All chunks count: an article above a paywall is an article.
        notices = self._notices.score_chunks(self._notices.compare(encoded), NODE_PHRASES_COMPARED)
        is_notice = _average_nearest(notices) >= nearest + NOTICE_MARGIN
        return _ComparedPage(
            chunks, encoded, similarities, margins, np.minimum(shares, CONFIDENCE_MAX), nodes, is_notice
        )

    def _compare_nodes(self, root_id: str, encoded: Vectors) -> _ComparedNodes | None:
        table = self._nodes.get(root_id)
        if table is None:
            return None
        similarities = table.compare(encoded)
        of_chunks = table.score_chunks(similarities, NODE_PHRASES_COMPARED)
        nearest = _average_nearest(of_chunks)
        return _ComparedNodes(table, similarities, _average_best(of_chunks), nearest)


def load_embedded_classifier(folder: Path | None = None) -> EmbeddedClassifier:
    """Load the classifier; a folder keeps the vectors of its phrases for the next time."""
    phrases, encoder = load_phrases(), SentenceEncoder()
    return EmbeddedClassifier(phrases, load_seed_vectors(phrases, encoder, folder), encoder)


def _average_best(of_chunks: Vectors) -> Vectors:
    """Average the best two thirds of the chunks, for each category."""
    chunks = (2 * len(of_chunks) + 2) // 3
    of_chunks.partition(len(of_chunks) - chunks, axis=0)
    return of_chunks[-chunks:].mean(axis=0)


def _average_nearest(of_chunks: Vectors) -> float:
    return float(of_chunks.max(axis=1).mean())


def _find_best(scores: Vectors) -> tuple[int, float]:
    """Return the place of the likeliest node below a root, and its share."""
    shares = _share_nodes(scores)
    best = int(np.argmax(shares))
    return best, float(shares[best])


def _share_nodes(scores: Vectors) -> Vectors:
    return _compute_softmax(NODE_TEMPERATURE * SCALE * scores)


def _compute_softmax(logits: NDArray[np.floating]) -> Vectors:
    powers = np.exp(logits - logits.max())
    return (powers / powers.sum()).astype(np.float32)


def _order(values: Vectors) -> list[int]:
    """List the places of values, the highest first."""
    return [int(place) for place in np.argsort(-values)]


def _describe_version(phrases: SeedPhrases, encoder: Encoder, prior: Mapping[str, float]) -> str:
    settings = [ROOT_TEMPERATURE, NODE_TEMPERATURE, SCALE, BEST_NODE_WEIGHT, sorted(prior.items())]
    digest = blake2b(msgspec.json.encode([settings, phrases.digest(), encoder.version]), digest_size=4)
    return f"{METHOD}-{digest.hexdigest()}"
