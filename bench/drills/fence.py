"""Drill 3: without the version in the WHERE clause late writes are visible, so drill 2 finds what it looks for.

Messages with an id have a second fence: an id is applied once. So the load here is reports of delivery, which have none,
and no questions are asked meanwhile.
"""

import asyncio
import signal
from typing import Final

from adloom.budgets.messages import LeaseUsage
from adloom.core.money import Micros
from bench.drills.cluster import Cluster
from bench.drills.failures import CALM_SECONDS
from bench.drills.result import Figures, require
from simulation.loop import make_random

VERSIONLESS: Final = "bench.drills.versionless_worker"
FROZEN: Final = "worker-1"
FROZEN_SECONDS: Final = 6.0  # Others have its shards after four.
TRIES: Final = 8  # Where it is told first that it has lost its shards, nothing is written late.
REPORTS_AT_ONCE: Final = 80
PAUSE_SECONDS: Final = 0.05
COST: Final = Micros(1_000)
# Every write follows the version before it, or was made from an older state than it replaces.
WATCH: Final = """
    CREATE TABLE drill_late_writes (key text);
    CREATE FUNCTION drill_note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO drill_late_writes VALUES (NEW.key); RETURN NEW; END
    $$;
    CREATE TRIGGER drill_watch BEFORE UPDATE ON brain_states FOR EACH ROW
        WHEN (NEW.version <> OLD.version + 1) EXECUTE FUNCTION drill_note();
"""


async def take_out_version(cluster: Cluster) -> Figures:
    """3. Drill 2 without the version in the WHERE clause: late writes are visible, and with it none is."""
    await cluster.pool.execute(WATCH)
    _, refused, freezes = await _freeze_under_reports(cluster)
    visible, _ = await _read(cluster)
    names = list(cluster.workers)
    for name in names:
        await cluster.end_worker(name)
    for name in names:
        await cluster.add_worker(name, module=VERSIONLESS)
    await cluster.wait_until_owned(len(names))
    visible_without, refused_without, freezes_without = await _freeze_under_reports(cluster)
    require(is_so=refused > 0, what="no late write was refused with the version")
    require(is_so=visible == 0, what=f"{visible} late writes were visible with the version")
    require(is_so=visible_without > 0, what="no late write was visible without the version")
    return {
        "late writes refused with the version": refused,
        "visible with it": visible,
        "freezes with it": freezes,
        "refused without it": refused_without,
        "visible without it": visible_without,
        "freezes without it": freezes_without,
    }


async def _freeze_under_reports(cluster: Cluster) -> tuple[int, int, int]:
    """Freeze a worker until it writes late; return how many late writes are visible, were refused, and its freezes."""
    stop = asyncio.Event()
    sending = asyncio.get_running_loop().create_task(_report(cluster, stop))
    await asyncio.sleep(CALM_SECONDS)
    found = before = await _read(cluster)  # Shards that move at the start may have cost some.
    freezes = 0
    while freezes < TRIES and found == before:
        freezes += 1
        cluster.signal(FROZEN, signal.SIGSTOP)
        await asyncio.sleep(FROZEN_SECONDS)
        cluster.signal(FROZEN, signal.SIGCONT)
        await asyncio.sleep(CALM_SECONDS * 2)
        found = await _read(cluster)
    stop.set()
    await sending
    return found[0] - before[0], found[1] - before[1], freezes


async def _read(cluster: Cluster) -> tuple[int, int]:
    visible: int = await cluster.pool.fetchval("SELECT count(*) FROM drill_late_writes")
    return visible, sum(one.fenced_writes for one in (await cluster.read_shards()).values())


async def _report(cluster: Cluster, stop: asyncio.Event) -> None:
    """Report as a delivery process does, which wants now more, now less."""
    chance, number = make_random(3, "reports"), 0
    while not stop.is_set():
        for address in chance.sample(cluster.campaigns, REPORTS_AT_ONCE):
            number += 1
            want = Micros(COST * chance.randrange(1, 50))
            cluster.sender.tell(address, LeaseUsage(session=1, report=number, lease=0, want=want, cost=COST))
        await asyncio.sleep(PAUSE_SECONDS)
