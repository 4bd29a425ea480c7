"""`adloom bench market`: how long a simulated market of 1,000 campaigns and a million requests takes."""

import gc
import time
from typing import Annotated, Final

import typer

from adloom.forecast.file.market_file import build_market
from adloom.forecast.file.parts import CampaignPart, MarketFile, PlacementPart, RulePart, VisitorPart
from adloom.forecast.market import SimulatedMarket
from adloom.forecast.market_run import MarketRun, make_chances
from adloom.schedule.pacing import PacingStrategy
from adloom.serving.index.rows import Delivery
from bench.figures import BenchTable, judge, show
from bench.processes import ShowStatus

PLACEMENTS: Final = 20
COUNTRIES: Final = ("BR", "DE", "FR", "IN", "US")
DEVICES: Final = ("desktop", "mobile")
DAY: Final = (3, 2, 2, 2, 2, 3, 5, 8, 10, 12, 13, 14, 14, 13, 13, 13, 13, 14, 16, 18, 18, 15, 10, 6)
REQUESTS: Final = 1_000_000
SECONDS_MAX: Final = 60  # For so many requests.
HOURS: Final = 24
LOOPS: Final = 1_000_000


def main(
    campaigns: Annotated[int, typer.Option(min=1, max=100_000)] = 1_000,
    requests: Annotated[int, typer.Option(min=1, max=100_000_000, help="On the simulated day.")] = REQUESTS,
) -> None:
    """Simulate one day: half of the placements are auctioned, half of the campaigns are paced, most are targeted."""
    show(lambda say: measure_day(campaigns, requests, say), width=120)


def measure_day(campaigns: int, requests: int, say: ShowStatus) -> BenchTable:
    say(f"compiling {campaigns:,} campaigns")
    market = build_bench_market(campaigns, requests)
    index = market.compile_index()
    run = MarketRun(market, index, make_chances(1, 0), hours=HOURS)
    gc.collect()
    gc.freeze()
    began, began_cpu = time.perf_counter(), time.process_time()
    for hour in run.iter_hours():
        say(f"{hour} of {HOURS} hours, {run.tally.requests:,} requests")
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    tally = run.tally
    budget = sum(one.config.daily_budget or 0 for one in market.campaigns)
    spent = sum(sum(one.spend) for one in tally.campaigns.values())
    row = [
        f"{campaigns:,}",
        f"{tally.requests:,}",
        f"{tally.filled / tally.requests:.1%}",
        f"{spent / budget:.1%}",
        f"{seconds:.1f}",
        f"{cpu:.1f}",
        f"{cpu / tally.requests * 1e6:.1f}",
        f"{measure_loop() * 1e9:.0f}",
    ]
    headings = ["campaigns", "requests", "filled", "spent", "seconds", "CPU s", "CPU µs a request", "loop ns"]
    allowed = SECONDS_MAX * max(1.0, requests / REQUESTS)
    goal = judge(f"at most {allowed:,.0f} s on one core", seconds, at_most=allowed, form="{:.1f} s")
    return BenchTable(title="A simulated day", headings=headings, rows=[row], goals=[goal])


def measure_loop() -> float:
    """Return the CPU time of one turn of a plain loop: how fast this core is now, for comparison."""
    counts: dict[int, int] = {}
    began = time.process_time()
    for number in range(LOOPS):
        counts[number % 1_000] = counts.get(number % 1_000, 0) + 1
    return (time.process_time() - began) / LOOPS


def build_bench_market(campaigns: int, requests: int) -> SimulatedMarket:
    """Build placements with 250 campaigns each; budgets are about what the traffic can pay."""
    slugs = [f"slot-{number}" for number in range(PLACEMENTS)]
    budget = 1.5 * requests / campaigns / 1_000 * 2
    groups = [
        CampaignPart(
            name=f"group {number}",
            bid=1.5 + 0.05 * number,
            bid_spread=0.4,
            copies=-(-campaigns // PLACEMENTS),
            daily_budget=budget,
            pacing=PacingStrategy.SMOOTH if number % 2 else PacingStrategy.ACCELERATED,
            placements=tuple(slugs[(number + step) % PLACEMENTS] for step in (0, 1, 3, 7, 12)),
            targeting=()
            if number % 3 == 0
            else (RulePart(rule_type="country", operator="in", value=[*COUNTRIES[number % 4 :][:3]]),),
            click_rate=0.005,
        )
        for number in range(PLACEMENTS)
    ]
    return build_market(
        MarketFile(
            placements=tuple(
                PlacementPart(
                    slug=slug,
                    requests_a_day=requests / PLACEMENTS,
                    delivery=Delivery.DIRECT if number % 2 else Delivery.AUCTION,
                    floor=0.2,
                )
                for number, slug in enumerate(slugs)
            ),
            visitors=tuple(
                VisitorPart(country=country, device=device) for country in COUNTRIES for device in DEVICES
            ),
            campaigns=tuple(groups),
            weekday=tuple(map(float, DAY)),
            seen=0.9,
        )
    )
