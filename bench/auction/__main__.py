"""`python -m bench.auction`: the cost of auctions; `--check N` compares N auctions with the reference instead."""

import os
import subprocess
import sys
import time
from itertools import count
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.auction.check import compare_auctions
from bench.auction.decision import AuctionCost, Spread, measure_costs, measure_resident_mebibytes

SIZES: Final = (1_000, 10_000, 100_000)
CHECK: Final = "--check"
MEMORY: Final = "--memory"


def main() -> None:
    """Measure all sizes, with their memory in child processes; or compare with the reference auction."""
    match sys.argv[1:]:
        case []:
            memory = [_measure_memory(size) for size in SIZES]
            _print_costs(measure_costs(SIZES), memory)
        case [option, size] if option == MEMORY:
            sys.stdout.write(str(measure_resident_mebibytes(int(size), os.getpid())))
        case [option, wanted, *seed] if option == CHECK and len(seed) <= 1:
            _check(int(wanted), first_seed=int(seed[0]) if seed else 0)
        case _:
            sys.exit(f"usage: python -m bench.auction [{CHECK} AUCTIONS [FIRST_SEED]]")


def _check(wanted: int, *, first_seed: int) -> None:
    """Compare with the reference auction, market by market; stop at the first difference."""
    started_at, done = time.monotonic(), 0
    for seed in count(first_seed):
        done += compare_auctions(seed)
        if done >= wanted:
            seconds = time.monotonic() - started_at
            Console().print(f"{done:,} auctions are as the plain one says ({seed=}, {seconds:.0f} s).")
            return


def _measure_memory(size: int) -> float:
    command = [sys.executable, "-m", "bench.auction", MEMORY, str(size)]
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - ourselves
    return float(done.stdout)


def _print_costs(costs: list[AuctionCost], memory: list[float]) -> None:
    table = Table(title="Auctions in process, µs: mean / p99", title_justify="left", title_style="dim")
    for heading in ("campaigns", "compile s", "heads ms", "ranked s", "MiB", "won", "bids"):
        table.add_column(heading, justify="right")
    for heading in ("by type", "by slug", "learned, type", "learned, slug", "listed, type", "listed, slug"):
        table.add_column(heading, justify="right")
    for cost, mebibytes in zip(costs, memory, strict=True):
        table.add_row(
            f"{cost.campaigns:,}",
            f"{cost.compile_seconds:.2f}",
            f"{cost.head_millis:.0f}",
            f"{cost.ranking_seconds:.2f}",
            f"{mebibytes:.0f}",
            f"{cost.won_share:.0%}",
            f"{cost.bids_mean:.0f}",
            *map(_format_spread, (cost.by_type, cost.by_slug, cost.learned_by_type, cost.learned_by_slug)),
            *map(_format_spread, (cost.listed_by_type, cost.listed_by_slug)),
        )
    console = Console(width=160)
    console.print(table)
    first, last = costs[0], costs[-1]
    console.print(
        f"Growth from {first.campaigns:,} to {last.campaigns:,} campaigns: "
        f"by type {last.by_type.mean / first.by_type.mean:.2f} times, "
        f"by slug {last.by_slug.mean / first.by_slug.mean:.2f} times; "
        f"learned {last.learned_by_type.mean / first.learned_by_type.mean:.2f} "
        f"and {last.learned_by_slug.mean / first.learned_by_slug.mean:.2f} times."
    )


def _format_spread(spread: Spread) -> str:
    return f"{spread.mean:.1f} / {spread.p99:.1f}"


if __name__ == "__main__":
    main()
