"""`adloom bench bids`: what it costs that all campaigns decide their bids in the same window, on one core.

Every campaign's actor takes a report at the start of a window and asks; all strategies run for all campaigns at once, the
acting one and those in its shadow; every actor takes its answer. Nothing is stored and nothing is sent. Times are of the
processor, so that other load on the machine does not count.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - seeded: the same campaigns again
from typing import Annotated, Final, TypeVar
from uuid import UUID

import typer

from adloom.bidding.decide import decide_with_shadows
from adloom.bidding.ports import Nets
from adloom.bidding.window import BidStrategy
from adloom.budgets.bid_model import (
    BidCounts,
    BidsDecided,
    FoundCounts,
    MultiplierRequest,
    build_decided,
    build_window_request,
)
from adloom.budgets.bids.decider import BATCH_MAX, add_counts
from adloom.budgets.bids.nets import load_nets
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import CampaignMessage, ConfigureCampaign, LeaseUsage
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Effect, Publish
from adloom.runtime.process.tuning import BATCH_THRESHOLD, freeze_startup_objects
from adloom.schedule.pacing import PacingStrategy
from bench.figures import BenchTable, judge, show
from bench.processes import ShowStatus

UNIT: Final = 1_000_000
CAMPAIGNS: Final = 10_000
SECONDS_MAX: Final = 2.0  # For so many campaigns.
NOON: Final = datetime(2026, 11, 17, 12, tzinfo=UTC)
WINDOW: Final = timedelta(minutes=15)
WARM_WINDOWS: Final = 3  # So that strategies remember something.

MadeT = TypeVar("MadeT")
_chance = Random(1)  # noqa: S311 - not a secret


class BiddingCampaign:
    """A campaign's actor."""

    def __init__(self, number: int) -> None:
        self.state = CampaignState(incarnation=1)
        self.report = 0
        strategies = list(BidStrategy)
        self.send(
            ConfigureCampaign(
                version=1,
                campaign_id=CampaignId(UUID(int=number + 1)),
                advertiser_id=None,
                is_running=True,
                daily_budget=Micros(_chance.randint(50, 5_000) * UNIT),
                total_budget=None,
                pacing=PacingStrategy.SMOOTH,
                timezone="UTC",
                hold_seconds=300,
                is_allotted=False,
                has_bid=True,
                bid_strategy=strategies[number % len(strategies)],
                target=Micros(_chance.randint(1, 100) * UNIT),
            ),
            NOON,
        )

    def send(self, message: CampaignMessage, now: datetime) -> Sequence[Effect]:
        self.state, effects = campaign_step.step(self.state, message, now, _chance)
        return effects

    def report_again(self, now: datetime) -> Sequence[Effect]:
        """Report within a window."""
        self.report += 1
        lease = max(self.state.leases, default=0)
        usage = LeaseUsage(
            session=1,
            report=self.report,
            lease=lease,
            want=Micros(16_000),
            cost=Micros(1_000),
            requests=40,
            opportunities=400,
        )
        return self.send(usage, now)

    def ask(self, now: datetime) -> MultiplierRequest:
        """Report at the start of a window."""
        effects = self.report_again(now)
        [asked] = [
            one.message
            for one in effects
            if isinstance(one, Publish) and isinstance(one.message, MultiplierRequest)
        ]
        return asked


def decide_for(requests: Sequence[MultiplierRequest], nets: Nets) -> list[BidsDecided]:
    """Decide as the worker does: in batches, with what the other strategies would have bid."""
    decided: list[BidsDecided] = []
    for start in range(0, len(requests), BATCH_MAX):
        complete = [
            add_counts(one, FoundCounts(one.counts + BidCounts(400, 8), has_conversions=False))
            for one in requests[start : start + BATCH_MAX]
        ]
        answers = decide_with_shadows([build_window_request(one) for one in complete], nets)
        decided += [
            build_decided(request, answer.decision, answer.state, answer.shadows)
            for request, answer in zip(complete, answers, strict=True)
        ]
    return decided


def main(campaigns: Annotated[int, typer.Option(min=1, max=1_000_000)] = CAMPAIGNS) -> None:
    """Measure how long all campaigns need to decide their bids, on one core."""
    show(lambda say: measure_windows(campaigns, say))


def measure_windows(campaigns: int, say: ShowStatus) -> BenchTable:
    say(f"starting {campaigns:,} campaigns")
    nets = load_nets()
    actors = [BiddingCampaign(number) for number in range(campaigns)]
    now = NOON
    asking = reporting = deciding = taking = 0.0
    freeze_startup_objects(BATCH_THRESHOLD)  # As the worker.
    for window in range(1, WARM_WINDOWS + 1):
        say(f"window {window} of {WARM_WINDOWS}")
        now += WINDOW
        moment = now
        requests, asking = _time(lambda moment=moment: [one.ask(moment) for one in actors])
        answers, deciding = _time(lambda requests=requests: decide_for(requests, nets))
        _, taking = _time(
            lambda answers=answers, moment=moment: [
                one.send(answer, moment) for one, answer in zip(actors, answers, strict=True)
            ]
        )
        _, reporting = _time(lambda moment=moment: [one.report_again(moment) for one in actors])
    asking -= reporting
    total = asking + deciding + taking
    rows = [
        [name, f"{seconds:.2f}", f"{seconds / campaigns * 1e6:.0f}"]
        for name, seconds in (
            ("campaigns ask, beyond an ordinary report", asking),
            ("all strategies decide", deciding),
            ("campaigns take the answer", taking),
            ("in all", total),
        )
    ]
    allowed = SECONDS_MAX * campaigns / CAMPAIGNS
    return BenchTable(
        title=f"{campaigns:,} campaigns decide, one core",
        headings=["", "seconds", "µs a campaign"],
        rows=rows,
        goals=[judge(f"at most {allowed:.1f} s", total, at_most=allowed, form="{:.1f} s")],
    )


def _time(work: Callable[[], MadeT]) -> tuple[MadeT, float]:
    began = time.process_time()
    made = work()
    return made, time.process_time() - began
