"""The scoring policy `learned` of a simulated market: the real model learns from simulated visitors."""

from collections import deque
from collections.abc import Callable, Generator
from typing import Final

from adloom.auction.learned import KINDS_MAX, LEARNED, LearnedScoring
from adloom.auction.score import SwappableScoring
from adloom.auction.training import Example, Learner, UnreadableLearnerError
from adloom.runtime.settings import LEARNING_WAIT_SECONDS
from adloom.serving.auction.market import StrengthSource
from adloom.serving.index.steps import run_steps

EXAMPLES_MIN: Final = 100  # That are worth a new model.

Rank = Callable[[str, StrengthSource], Generator[None, None, int]]


class SimulatedClickModel(SwappableScoring[LearnedScoring]):
    """A policy that learns; the heuristic until it has.

    An impression is an example once a click of it would have come. Kinds of visitors are ranked with each model, as
    delivery does in the background.
    """

    def __init__(self, state: bytes | None) -> None:
        super().__init__(LearnedScoring())
        self._learner = _decode(state)
        self._waiting: deque[tuple[int, Example]] = deque()
        self._version = 0
        self._used = 0  # Examples that the model in use knows.
        self._rank: Rank | None = None

    def begin(self, rank: Rank) -> None:
        """Use what is known already; `rank` ranks bids by a model before it is used."""
        self._rank = rank
        if self._learner.progress.examples:
            self._use(0)

    def record(self, example: Example, second: int) -> None:
        """Remember what became of an offer that was seen."""
        self._waiting.append((second + LEARNING_WAIT_SECONDS, example))

    def advance(self, second: int) -> None:
        """Learn what is due; a new model is used if there is enough of it."""
        waiting, learner = self._waiting, self._learner
        while waiting and waiting[0][0] <= second:
            learner.learn(waiting.popleft()[1])
        if learner.progress.examples - self._used >= EXAMPLES_MIN:
            self._use(second)

    def _use(self, second: int) -> None:
        self._version += 1
        self._used = self._learner.progress.examples
        before = self._scoring
        model = self._learner.build_model(version=self._version, at=float(second))
        kinds = [*before.kinds]
        if len(kinds) < KINDS_MAX and (frequent := before.find_frequent_kind()) is not None:
            kinds.append(frequent)
        scoring = LearnedScoring(model, kinds=kinds)
        if self._rank is not None:
            run_steps(self._rank(LEARNED, lambda: scoring.strengths))
        self._scoring = scoring
        before.retire()


def _decode(state: bytes | None) -> Learner:
    """Go on with what a learner knows; nothing is known of one of another release."""
    try:
        return Learner() if state is None else Learner.decode(state)
    except UnreadableLearnerError:
        return Learner()
