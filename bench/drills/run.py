"""`just drills`: runs drills under load, each on a cluster of its own or several on one, and prints their figures.

It exits with 1 if one of them is lost.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from rich.console import Console

from adloom.app.progress import show_progress
from bench.drills.cluster import Cluster, run_cluster
from bench.drills.disorder import disorder_messages, set_clock_wrong
from bench.drills.equality.campaigns import compare_campaigns
from bench.drills.equality.others import compare_others
from bench.drills.failures import (
    CALM_SECONDS,
    add_worker,
    delete_stream,
    freeze_worker,
    kill_nats,
    kill_nats_leader,
    kill_worker,
    promote_standby,
    restart_postgres,
    restart_workers,
)
from bench.drills.fence import take_out_version
from bench.drills.load import ChargeCheck, Load
from bench.drills.market import kill_directory
from bench.drills.namespace import cut_off_worker
from bench.drills.parts.drills import PART_DRILLS, run_part_drill
from bench.drills.rates import LARGE_CAMPAIGNS, measure_large, measure_rates
from bench.drills.result import DrillError, Figures, NotPossibleError

SEEDS: Final = 3


async def compare_hosts(cluster: Cluster) -> Figures:
    """12. The same messages on the host in one process and on the one on NATS: equal states of all kinds."""
    for name in list(cluster.workers):
        await cluster.end_worker(name)
    figures: Counter[str] = Counter()
    for seed in range(SEEDS):
        figures.update(await compare_campaigns(cluster.nats_url, cluster.pool, seed=seed))
        figures.update(await compare_others(cluster.nats_url, cluster.pool, seed=seed))
    return {"seeds": SEEDS, **figures}


Drill = Callable[[Cluster], Awaitable[Figures]]
DRILLS: Final[dict[str, Drill]] = {
    "1": kill_worker,
    "2": freeze_worker,
    "3": take_out_version,
    "4": add_worker,
    "5": restart_workers,
    "6": kill_nats,
    "6-of-three": kill_nats_leader,
    "7": delete_stream,
    "8": disorder_messages,
    "9": restart_postgres,
    "10": kill_directory,
    "11": set_clock_wrong,
    "12": compare_hosts,
    "13": cut_off_worker,
    "14": measure_rates,
    "postgres": promote_standby,
    "large": measure_large,
}
UNLOADED: Final = frozenset({"14", "large"})  # They bring their own load.
WITHOUT_BOOKS: Final = frozenset({"3", "12"})  # They compare something else.
NAMED_ONLY: Final = frozenset({"large"})  # Takes ten minutes and more.
CAMPAIGNS: Final = {"large": LARGE_CAMPAIGNS}
CAMPAIGNS_OTHERWISE: Final = 300
WITH_THREE_NATS: Final = frozenset({"6-of-three"})
WITH_STANDBY: Final = frozenset({"postgres"})
# Workers that also tell actors what has changed in the catalog.
ROLES: Final = {"10": "entity,singleton"}
# Each takes a few seconds; the first and the last kill a worker.
SHORT: Final = ("1", "7", "6", "9", "10")
TOGETHER: Final = "short"  # The name of all of them, on one cluster.
SHORT_CAMPAIGNS: Final = 120
SHORT_PAUSE_SECONDS: Final = 0.3


def list_drills() -> list[str]:
    """List all drills that run without being named."""
    return [one for one in (*DRILLS, *PART_DRILLS) if one not in NAMED_ONLY]


def find_title(name: str) -> str:
    return (PART_DRILLS.get(name) or DRILLS[name]).__doc__ or name


async def run_drill(name: str) -> tuple[Figures, ChargeCheck | None]:
    """Run one drill on a cluster of its own, under load, and check the charges at its end, where it has any."""
    if name in PART_DRILLS:
        return await run_part_drill(PART_DRILLS[name]), None
    if name in WITHOUT_BOOKS:
        async with run_cluster(campaigns=SHORT_CAMPAIGNS) as cluster:
            return await DRILLS[name](cluster), None
    async with run_cluster(
        campaigns=CAMPAIGNS.get(name, CAMPAIGNS_OTHERWISE),
        has_standby=name in WITH_STANDBY,
        is_nats_replicated=name in WITH_THREE_NATS,
        roles=ROLES.get(name, "entity"),
    ) as cluster:
        if name in UNLOADED:
            return await DRILLS[name](cluster), await Load(cluster).check()
        figures, check = await _run_under(Load(cluster), cluster, [name])
        return figures[name], check


async def run_short_drills(*, patience: float = 1.0) -> tuple[dict[str, Figures], ChargeCheck]:
    """Run the short drills one after another on one small cluster, with bounds that are `patience` times as wide."""
    async with run_cluster(campaigns=SHORT_CAMPAIGNS, roles=ROLES["10"], patience=patience) as cluster:
        return await _run_under(Load(cluster, pause_seconds=SHORT_PAUSE_SECONDS), cluster, SHORT)


async def _run_under(
    load: Load, cluster: Cluster, names: Sequence[str]
) -> tuple[dict[str, Figures], ChargeCheck]:
    charging = asyncio.get_running_loop().create_task(load.run())
    await asyncio.sleep(CALM_SECONDS)
    figures: dict[str, Figures] = {}
    for name in names:
        before = load.failures
        found = await DRILLS[name](cluster)
        await asyncio.sleep(CALM_SECONDS)
        figures[name] = {**found, "sent again": load.failures - before}
    load.stop()
    await charging
    return figures, await load.check()


def main() -> None:
    console = Console(soft_wrap=True)
    names = sys.argv[1:] or list_drills()
    is_lost = False
    with show_progress("drills") as work:
        for place, name in enumerate(names, start=1):
            work.say(f"{place} of {len(names)}: {name}")
            is_lost = not _run(console, name) or is_lost
    sys.exit(1 if is_lost else 0)


def _run(console: Console, name: str) -> bool:
    """Run a drill, or the short ones together, and print what came of it; return whether nothing was lost."""
    try:
        if name == TOGETHER:
            found, check = asyncio.run(run_short_drills())
            for one in SHORT:
                _print_figures(console, one, found[one])
        else:
            figures, check = asyncio.run(run_drill(name))
            _print_figures(console, name, figures)
    except NotPossibleError as error:
        console.print(f"[bold]{name}[/bold] was not run: {error}")
        return True
    except DrillError as error:
        console.print(f"[bold]{name}[/bold] [red]LOST[/red] {error}")
        return False
    if check is not None:
        _print_check(console, check)
    return check is None or check.is_right


def _print_figures(console: Console, name: str, figures: Figures) -> None:
    console.print(f"[bold]{find_title(name)}[/bold]")
    for what, figure in figures.items():
        console.print(f"  {what}: {figure:.2f}" if isinstance(figure, float) else f"  {what}: {figure}")


def _print_check(console: Console, check: ChargeCheck) -> None:
    console.print(
        f"  sent {check.sent}, charged {check.charged}, lost {check.lost}, twice {check.twice},"
        f" wrong states {check.wrong_states}, over budget {check.over_budget},"
        f" days whose sums do not agree {check.wrong_days} of {check.days}"
    )
    if not check.is_right:
        console.print("  [red]LOST[/red] charges were lost, or made twice")


if __name__ == "__main__":
    main()
