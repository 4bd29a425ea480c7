"""The bid strategies of a simulated market: the real ones, asked at the first report of a window, answered once a turn."""

from collections.abc import Callable
from functools import cache
from typing import Final

from adloom.bidding.decide import decide_all
from adloom.bidding.ports import Nets
from adloom.bidding.window import BidStrategy
from adloom.budgets.addresses import campaign_address
from adloom.budgets.bid_model import BidCounts, BidsDecided, MultiplierRequest
from adloom.budgets.bids.decider import add_counts, build_decided, build_window_request
from adloom.budgets.bids.nets import load_nets
from adloom.runtime.actors.actor import Address

NO_NETS: Final = Nets()
WITH_NETS: Final = frozenset({BidStrategy.FLEET, BidStrategy.DQN})

CountEvents = Callable[[MultiplierRequest], BidCounts]  # What a campaign's ads have brought.


class SimulatedStrategies:
    """Campaigns that wait for their multiplier."""

    def __init__(self, count: CountEvents) -> None:
        self._count = count
        self._asked: list[MultiplierRequest] = []

    def ask(self, request: MultiplierRequest) -> None:
        self._asked.append(request)

    def decide(self) -> list[tuple[Address, BidsDecided]]:
        """Decide for all that have asked since the last time."""
        asked, self._asked = self._asked, []
        if not asked:
            return []
        complete = [add_counts(one, self._count(one)) for one in asked]
        requests = [build_window_request(one) for one in complete]
        has_nets = any(one.strategy in WITH_NETS for one in requests)
        answers = decide_all(requests, _load_once() if has_nets else NO_NETS)
        return [
            (
                campaign_address(request.campaign_id, request.advertiser_id),
                build_decided(request, answer.decision, answer.state, {}),
            )
            for request, answer in zip(complete, answers, strict=True)
        ]


@cache
def _load_once() -> Nets:
    return load_nets()
