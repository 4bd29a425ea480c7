"""The bid strategies of a simulated market: the real ones, asked at the first report of a window, answered once a turn."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from adloom.bidding.decide import decide_all
from adloom.bidding.ports import Nets
from adloom.bidding.weights_card import read_card
from adloom.bidding.window import BidStrategy
from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.bid_model import (
    BidsDecided,
    FoundCounts,
    MultiplierRequest,
    bid_in_full,
    build_decided,
    build_window_request,
)
from adloom.budgets.bids.decider import add_counts
from adloom.budgets.bids.nets import FleetWeights, load_nets
from adloom.forecast.market import SimulatedMarket
from adloom.runtime.actors.actor import Address

NO_NETS: Final = Nets()
WITH_NETS: Final = frozenset({BidStrategy.FLEET, BidStrategy.DQN})

CountEvents = Callable[[MultiplierRequest], FoundCounts]  # What a campaign's ads have brought.


class SimulatedStrategies:
    """Campaigns that wait for their multiplier."""

    def __init__(self, count: CountEvents, weights: FleetWeights) -> None:
        self._count = count
        self._weights = weights
        self._asked: list[MultiplierRequest] = []

    def ask(self, request: MultiplierRequest) -> None:
        self._asked.append(request)

    def decide(self) -> list[tuple[Address, BidsDecided]]:
        """Decide for all that have asked since the last time."""
        asked, self._asked = self._asked, []
        if not asked:
            return []
        complete = [add_counts(one, self._count(one)) for one in asked if one.has_budget]
        requests = [build_window_request(one) for one in complete]
        has_nets = any(one.strategy in WITH_NETS for one in requests)
        answers = decide_all(requests, _load_once(self._weights) if has_nets else NO_NETS)
        decided = [
            (request, build_decided(request, answer.decision, answer.state, {}))
            for request, answer in zip(complete, answers, strict=True)
        ]
        decided += [(one, bid_in_full(one)) for one in asked if not one.has_budget]
        return [
            (make_campaign_address(one.campaign_id, one.advertiser_id), answer) for one, answer in decided
        ]


@cache
def _load_once(weights: FleetWeights) -> Nets:
    return load_nets(weights)


def describe_weights(weights: FleetWeights, strategies: Iterable[BidStrategy]) -> str | None:
    """Say which weights `fleet` has decided with; nothing where no campaign bids by it."""
    if BidStrategy.FLEET not in strategies:
        return None
    if weights.own is not None:
        card = read_card(weights.own)
        return f"The strategy fleet decides with your own weights, of {card.trained_on} (sha256 {card.sha256[:12]})."
    because = "" if weights.problem is None else f", since yours cannot be used: {weights.problem}"
    return f"The strategy fleet decides with the weights of the package{because}."


def list_strategies(*markets: SimulatedMarket | None) -> set[BidStrategy]:
    """Return the strategies that campaigns of markets bid by."""
    return {one.config.bid_strategy for market in markets if market is not None for one in market.campaigns}
