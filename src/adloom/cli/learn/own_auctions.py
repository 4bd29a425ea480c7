"""`adloom learn fleet --from-ledger 30d`: refines the shipped weights on the installation's own auctions, if that wins."""

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import numpy.typing as npt
from rich.console import Console

from adloom.app.progress import show_progress
from adloom.bidding import network
from adloom.bidding.network import FleetNet
from adloom.bidding.shipped import decode_fleet, read_shipped
from adloom.bidding.training.fleet import TrainingPlan, TrainingStep, measure_fleet, train_fleet
from adloom.bidding.training.market_days import WINDOWS, Opportunity, build_tables
from adloom.bidding.weights import WeightsCard
from adloom.cli.learn.recorded_days import (
    Archive,
    build_archive,
    draw_days,
    score_fleet,
    write_result,
)
from adloom.cli.options import LearnCommandError
from adloom.core.clock import SystemClock
from adloom.events.auction_log.learning_store import (
    RecordedAuction,
    TargetedCampaign,
    count_auctions,
    load_targeted_campaigns,
    read_auctions,
)
from adloom.events.auction_log.row import BidView
from adloom.runtime.postgres import open_pool

DAYS_MIN, DAYS_MAX = 4, 365
HELD_OUT: Final = 4  # One day in so many, the last ones.
AUCTIONS_A_DAY_MAX: Final = 20_000  # Of more, an even sample.
CAMPAIGNS_MAX: Final = 500
OPPORTUNITIES_MIN: Final = 1_000
RATE: Final = 0.25  # Of the usual: refine, do not begin anew.
ONE_DAY: Final = timedelta(days=1)
WINDOW_SECONDS: Final = 86_400 // WINDOWS


def refine_from_ledger(asked: str, database_url: str, *, seed: int, steps: int, out: Path) -> bool:
    """Return whether the refined weights won on the held-out days; only then are they written."""
    console, days = Console(), parse_days(asked)
    end = datetime.combine(SystemClock().now().date(), time(), tzinfo=UTC)
    tables = asyncio.run(read_own_days(database_url, end - days * ONE_DAY, days))
    archive = build_archive(f"own auctions, {days} days until {end.date()}", tables)
    shipped = decode_fleet(read_shipped("fleet") or b"")
    curve: list[float] = []
    with show_progress("refine", steps, unit="steps") as work:

        def on_step(step: TrainingStep, net: FleetNet) -> None:
            del net
            curve.append(step.share)
            work.advance(note=f"{step.share:.3f}")

        plan = TrainingPlan(steps=steps, seed=seed, rate=RATE)
        refined = train_fleet(archive.train, plan, begin=shipped, on_step=on_step)
    return keep_if_better(console, archive, shipped, refined, plan, out, curve)


def keep_if_better(  # noqa: PLR0913, PLR0917 - both nets, where they come from and where they go
    console: Console,
    archive: Archive,
    shipped: FleetNet,
    refined: FleetNet,
    plan: TrainingPlan,
    out: Path,
    curve: list[float],
) -> bool:
    before, after = (
        measure_fleet(archive.held_out, net, is_guarded=True).share for net in (shipped, refined)
    )
    if not after > before:
        console.print(
            f"On the held-out days the shipped weights have {before:.4f}, the refined ones {after:.4f}."
        )
        console.print("The shipped weights stay; nothing was written.")
        return False
    card = WeightsCard(
        kind="fleet",
        data=archive.name,
        train_days=archive.train_days,
        held_out_days=archive.held_out_days,
        seed=plan.seed,
        steps=plan.steps,
        scores=score_fleet(archive.held_out, refined) | {"shipped weights, with guard": round(before, 4)},
        trained_on=SystemClock().now().date().isoformat(),
    )
    arrays = {name: getattr(refined, name) for name in network.SHAPES}
    write_result(console, out, card, arrays, {"batch": curve}, draw_days(archive.held_out, refined))
    return True


def parse_days(asked: str) -> int:
    found = re.fullmatch(r"(\d{1,4})d?", asked)
    days = int(found[1]) if found else 0
    if not DAYS_MIN <= days <= DAYS_MAX:
        raise LearnCommandError(
            f"--from-ledger is {asked!r}: say how many days, from {DAYS_MIN}d to {DAYS_MAX}d, as 30d."
        )
    return days


async def read_own_days(database_url: str, first: datetime, days: int) -> dict[str, npt.NDArray[Any]]:
    """Read whole days (UTC) of auctions, and build their tables."""
    found: list[Opportunity] = []
    async with (
        open_pool(database_url, size_max=1) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        whole = (first, first + days * ONE_DAY)
        campaigns = (await load_targeted_campaigns(connection, *whole))[:CAMPAIGNS_MAX]
        if not campaigns:
            raise LearnCommandError(
                "No campaign has both a budgetDailyPaisa and a targetCpa: there is nothing to learn from."
            )
        seats = {one.campaign_id: (seat, one) for seat, one in enumerate(campaigns)}
        for day in range(days):
            begins, ends = first + day * ONE_DAY, first + (day + 1) * ONE_DAY
            count = await count_auctions(connection, begins, ends, list(seats))
            one_in = max(1, -(-count // AUCTIONS_A_DAY_MAX))
            async for auction in read_auctions(connection, begins, ends, list(seats), one_in=one_in):
                found += list_opportunities(auction, seats, day=day, weight=float(one_in))
    if len(found) < OPPORTUNITIES_MIN:
        raise LearnCommandError(
            f"Only {len(found)} auctions of campaigns with a target are on record: {OPPORTUNITIES_MIN} are needed."
        )
    budgets, targets = [one.budget for one in campaigns], [one.target for one in campaigns]
    return build_tables(found, budgets, targets, days=days, held_out=max(1, days // HELD_OUT))


def list_opportunities(
    auction: RecordedAuction,
    seats: dict[UUID, tuple[int, TargetedCampaign]],
    *,
    day: int,
    weight: float,
) -> Iterator[Opportunity]:
    """For each campaign's best bid: what it would have needed against the best of the others, and the floor."""
    took_part = [bid for bid in auction.bids if bid.outcome in {"won", "lost"} and bid.ecpm > 0]
    best: dict[UUID, BidView] = {}
    for bid in took_part:
        if bid.campaign_id not in best or bid.ecpm > best[bid.campaign_id].ecpm:
            best[bid.campaign_id] = bid
    at = auction.at.astimezone(UTC)
    window = (at.hour * 3600 + at.minute * 60 + at.second) // WINDOW_SECONDS
    for campaign_id, bid in best.items():
        own = price_impressions(bid)
        if campaign_id not in seats or own <= 0:
            continue
        rival = max((other.ecpm for other in took_part if other.campaign_id != campaign_id), default=0.0)
        needed = max(rival / bid.ecpm, float(auction.floor_cpm) / own)
        seat, campaign = seats[campaign_id]
        value = bid.predicted_ctr * campaign.conversion_rate
        yield Opportunity(day, window, seat, needed, needed * own / 1000, value, weight)


def price_impressions(bid: BidView) -> float:
    """Return what a bid expects to pay for a thousand impressions, at most."""
    return bid.bid if bid.bid_type == "cpm" else bid.bid * 1000 * bid.predicted_ctr
