"""`python -m bench.scale`: the costs of each size, measured in a process of its own."""

import os
import subprocess
import sys
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table

from bench.scale.catalog import CatalogSize
from bench.scale.measure import ScaleCost, measure_cost

SIZES: Final = (
    CatalogSize(1_000, 1_000, 30_000),
    CatalogSize(10_000, 1_000, 30_000),
    CatalogSize(100_000, 1_000, 100_000),
    CatalogSize(1_000, 1, 1_000),
    CatalogSize(10_000, 1, 10_000),
    CatalogSize(100_000, 1, 100_000),
)


def main() -> None:
    """Measure all sizes; in a child process the one in its arguments."""
    if len(sys.argv) > 1:
        size = msgspec.json.decode(sys.argv[1], type=CatalogSize)
        sys.stdout.buffer.write(msgspec.json.encode(measure_cost(size, os.getpid())))
        return
    table = Table(title="CPU µs per request, the best of many turns", title_justify="left", title_style="dim")
    for heading in ("campaigns", "placements", "assignments", "compile s", "step ms", "MiB", "filled"):
        table.add_column(heading, justify="right")
    for heading in ("decide µs", "hit µs", "leased µs", "miss µs"):
        table.add_column(heading, justify="right")
    for size in SIZES:
        table.add_row(*_format_cells(_measure(size)))
    Console(width=120).print(table)


def _measure(size: CatalogSize) -> ScaleCost:
    command = [sys.executable, "-m", "bench.scale", msgspec.json.encode(size).decode()]
    done = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - ourselves
    return msgspec.json.decode(done.stdout, type=ScaleCost)


def _format_cells(cost: ScaleCost) -> list[str]:
    size = cost.size
    return [
        *(f"{number:,}" for number in (size.campaigns, size.placements, size.assignments)),
        f"{cost.compile_seconds:.2f}",
        f"{cost.longest_step_millis:.1f}",
        f"{cost.resident_mebibytes:.0f}",
        f"{cost.filled_share:.0%}",
        *(
            f"{micros:.1f}"
            for micros in (cost.decide_micros, cost.hit_micros, cost.leased_micros, cost.miss_micros)
        ),
    ]


if __name__ == "__main__":
    main()
