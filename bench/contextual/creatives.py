"""`adloom bench creatives`: which choice of creatives gets the most clicks, against click rates that are known.

Five creatives of equal bids fill one slot. Results reach the choice as in delivery: those of the last hour, by the
minute. The figure is the share of the clicks that the best creative alone would have got.
"""

from collections import deque
from collections.abc import Callable
from random import Random  # noqa: TID251 - seeded, and of the bench alone
from statistics import mean
from typing import Annotated, Final

import typer

from adloom.auction.creative_choice import ChoiceMethod, ChoicePolicy, Contender, rank
from adloom.core.money import Micros
from bench.figures import BenchTable, show

CREATIVES: Final = 5
SPREAD: Final = (0.4, 0.6, 0.8, 1.0, 2.2)  # Of the mean click rate.
IMPRESSIONS: Final = (1_000, 10_000, 100_000)
RATES: Final = (0.001, 0.003, 0.01)
EPSILON: Final = 0.1
HOUR_MINUTES: Final = 60
BID: Final = Micros(1_000_000)

Counts = list[tuple[int, int]]
Choose = Callable[[Counts, float, Random], int]


def choose_informed(counts: Counts, rate: float, chance: Random) -> int:
    """Draw around the site's click rate."""
    policy = ChoicePolicy(click_rate=rate)
    return rank([Contender(BID, 0.5, *one) for one in counts], policy, chance)[0].position


def choose_by_ladder(counts: Counts, rate: float, chance: Random) -> int:
    """Go up the ladder of the seed document."""
    del rate
    policy = ChoicePolicy(method=ChoiceMethod.LADDER)
    return rank([Contender(BID, 0.5, *one) for one in counts], policy, chance)[0].position


def choose_greedily(counts: Counts, rate: float, chance: Random) -> int:
    """Take the best so far, and one time in ten any."""
    del rate
    if chance.random() < EPSILON:
        return chance.randrange(len(counts))
    return max(range(len(counts)), key=lambda one: (counts[one][1] + 1) / (counts[one][0] + 2))


def choose_any(counts: Counts, rate: float, chance: Random) -> int:
    """Take any."""
    del rate
    return chance.randrange(len(counts))


METHODS: Final[dict[str, Choose]] = {
    "Thompson, informed prior": choose_informed,
    "Thompson, ladder": choose_by_ladder,
    "greedy, one in ten any": choose_greedily,
    "any": choose_any,
}


def main(
    *,
    runs: Annotated[int, typer.Option(min=1, max=1_000, help="Runs of each figure.")] = 10,
    per_minute: Annotated[int, typer.Option(min=1, max=100_000, help="Impressions a minute.")] = 1_000,
) -> None:
    """Compare choices of creatives by the clicks that they get."""

    def measure(say: Callable[[str], None]) -> BenchTable:
        rows: list[list[str]] = []
        for rate in RATES:
            for name, choose in METHODS.items():
                say(f"{name} at {rate:.1%}")
                shares = [simulate(choose, rate, seed, per_minute=per_minute) for seed in range(runs)]
                figures = [
                    f"{mean(share[place] for share in shares):.1%}" for place in range(len(IMPRESSIONS))
                ]
                rows.append([f"{rate:.1%}, {name}", *figures])
        return BenchTable(
            title=f"clicks, as a share of those of the best creative alone; means of {runs} runs",
            headings=["click rate, choice", *(f"{count:,}" for count in IMPRESSIONS)],
            rows=rows,
        )

    show(measure)


def simulate(choose: Choose, rate: float, seed: int, *, per_minute: int) -> list[float]:
    """Return the share of the best creative's expected clicks after each number of impressions."""
    chance = Random(seed)  # noqa: S311 - not a secret
    rates = [rate * one for one in SPREAD]
    chance.shuffle(rates)
    window = Window(per_minute)
    expected, shares = 0.0, list[float]()
    for number in range(1, IMPRESSIONS[-1] + 1):
        # The site's own click rate, as far as the last hour knows it.
        chosen = choose(window.counts, window.find_rate(), chance)
        expected += rates[chosen]
        window.add(chosen, is_click=chance.random() < rates[chosen])
        if number in IMPRESSIONS:
            shares.append(expected / (number * max(rates)))
    return shares


class Window:
    """Impressions and clicks of the last hour, by minute."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._minutes: deque[list[tuple[int, bool]]] = deque([[]])
        self.counts: Counts = [(0, 0)] * CREATIVES

    def add(self, creative: int, *, is_click: bool) -> None:
        if len(self._minutes[-1]) >= self._per_minute:
            self._minutes.append([])
            if len(self._minutes) > HOUR_MINUTES:
                for one, was_click in self._minutes.popleft():
                    self._count(one, -1, was_click=was_click)
        self._minutes[-1].append((creative, is_click))
        self._count(creative, 1, was_click=is_click)

    def find_rate(self) -> float:
        """Return the click rate of all, with a little of what is usual."""
        impressions, clicks = (sum(some) for some in zip(*self.counts, strict=True))
        usual = ChoicePolicy()
        weight = usual.prior_impressions * CREATIVES
        return (clicks + usual.click_rate * weight) / (impressions + weight)

    def _count(self, creative: int, by: int, *, was_click: bool) -> None:
        impressions, clicks = self.counts[creative]
        self.counts[creative] = impressions + by, clicks + (by if was_click else 0)
