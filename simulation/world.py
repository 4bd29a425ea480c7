"""The event log on virtual time: visitors, delivery processes, workers, servers, a disk, and their faults."""

import asyncio
import math
from collections.abc import Callable
from datetime import date
from typing import Final

from adloom.core.clock import Clock
from adloom.core.ids import BannerId, PlacementId
from adloom.events.log.event import Impression, encode_event
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from simulation.base_world import BaseWorld, Outcome, Plan, run_world
from simulation.campaigns import SLUG, SimulatedCampaigns
from simulation.disk import Disk
from simulation.event_log import EventLogServer
from simulation.faults import LATE_SECONDS_MAX, WallClock
from simulation.laws import StoredEvents, find_id_violations, find_quarantine_violations, find_violations
from simulation.loop import make_random
from simulation.processes import BRISK, ConnectionLostError, DeliveryProcess, Pace, Servers, WorkerProcess
from simulation.tables import SURPRISING, UNFOLDABLE, TablesServer, TopicServer
from simulation.visitors import Visitors

DAY_SECONDS: Final = 86_400.0
CAMPAIGNS: Final = 3
SPOOL_BYTES_MAX: Final = 2**20
LOG_CLOCK_HOURS_MAX: Final = (
    0.01  # Were it further ahead, the log would not be trimmed for the rest of the run.
)


class EventLogPlan(Plan, frozen=True, kw_only=True):
    """What to simulate; servers can be replaced by broken ones."""

    pace: Pace = BRISK
    spool_bytes_max: int = SPOOL_BYTES_MAX
    log: type[EventLogServer] = EventLogServer
    tables: type[TablesServer] = TablesServer
    topic: type[TopicServer] = TopicServer
    disk: type[Disk] = Disk


class World(BaseWorld[EventLogPlan, DeliveryProcess]):
    """Everything of one run."""

    def __init__(self, plan: EventLogPlan, on_seconds: Callable[[float], object]) -> None:
        super().__init__(plan)
        self._on_seconds = on_seconds
        catalog = SimulatedCampaigns(
            self._ids, make_random(plan.seed, "people"), campaigns=CAMPAIGNS, has_budgets=False
        )
        self._index = catalog.build_index()
        self._log_clock = WallClock(self._clock, self._faults, hours_max=LOG_CLOCK_HOURS_MAX)
        log = plan.log(self._faults, self._log_clock)
        self._servers = Servers(
            log=log,
            tables=plan.tables(self._faults, catalog.list_keys()),
            topic=plan.topic(self._faults, log.outages),
            disk=plan.disk(self._faults),
        )
        self._visitors = Visitors(
            self._ask, self._faults, self._clock, self._ids, make_random(plan.seed, "readers")
        )
        self._spoiled: list[bytes] = []

    async def run(self) -> None:
        """Follow the plan, let everything settle, and check the laws."""
        async with asyncio.TaskGroup() as tasks:
            self._begin(tasks, self._servers.log.outages, self._servers.tables.outages)
            tasks.create_task(self._log_clock.jump(self._is_calm))
            await self._send_traffic()
            self._calm_down()
            await asyncio.sleep(LATE_SECONDS_MAX)
            await self._wait_until(
                lambda: not self._list_unsettled(), seconds_max=self._plan.pace.settle_seconds_max
            )
            self.violations += self._list_unsettled()
            self._is_over.set()
        self._check_laws()

    async def _send_traffic(self) -> None:
        clock = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as views:
            while clock() < self._plan.seconds:
                rate = self._plan.views_per_second * _find_traffic_share(clock())
                await asyncio.sleep(self._chance.expovariate(rate))
                self._on_seconds(clock())
                views.create_task(self._visitors.view_page(SLUG))
                if self._faults.strikes("entry spoiled", self._faults.rates.spoiled):
                    self._spoil()

    def _spoil(self) -> None:
        """Append an entry that cannot be decoded, that no table takes, or that crashes the program."""
        number = len(self._spoiled)
        entry = b"no event %d" % number
        if name := ("", UNFOLDABLE, SURPRISING)[number % 3]:
            now = self._clock.now()
            entry = encode_event(
                Impression(
                    correlation_id=f"{name} {number}",
                    banner_id=BannerId(self._ids.make()),
                    placement_id=PlacementId(self._ids.make()),
                    occurred_at=now,
                    received_at=now,
                )
            )
        self._spoiled.append(entry)
        self._servers.log.take(entry)

    def _start_delivery(self, number: int, clock: Clock) -> DeliveryProcess:
        self._delivery[number] = process = DeliveryProcess(
            f"delivery-{number}",
            self._servers,
            self._index,
            clock=clock,
            ids=self._ids,
            spool_bytes_max=self._plan.spool_bytes_max,
            pace=self._plan.pace,
        )
        return process

    def _start_worker(self, name: str, clock: Clock) -> WorkerProcess:
        return WorkerProcess(name, self._servers, clock=clock, pace=self._plan.pace)

    async def _ask(self, request: FastRequest) -> FastAnswer:
        process = self._pick_delivery()
        if process is None:
            raise ConnectionLostError
        return await process.ask(request)

    def _list_unsettled(self) -> list[str]:
        today, servers = self._clock.now().date(), self._servers
        said = {
            "the tables never caught up": servers.tables.cursor != servers.log.last_id,
            "the topic never caught up": servers.topic.cursor != servers.log.last_id,
            "the spool was never drained": bool(servers.disk.files),
            "a day that is over was not rolled up again": bool(servers.tables.list_stale_days(before=today)),
        }
        return [sentence for sentence, is_so in said.items() if is_so]

    def _check_laws(self) -> None:
        tables = self._servers.tables
        statistics = tables.compute_statistics()
        for day in tables.list_stale_days(before=date.max):
            tables.roll_up(day)
        stored = StoredEvents(
            rows=tables.list_rows(),
            counts={
                "the live counters": tables.counts,
                "the statistics": statistics,
                "the rollup": tables.rolled_up,
                "the statistics from the rollup": tables.compute_statistics(),
            },
            invalid_counts=tables.invalid_counts,
            topic=self._servers.topic.published,
        )
        self.violations += find_violations(self._visitors.witness, stored)
        self.violations += find_id_violations(self._servers.log.repeated_ids)
        self.violations += find_quarantine_violations(self._spoiled, self._servers.log.dead.values())

    def _count(self) -> dict[str, int]:
        visitors, servers = self._visitors, self._servers
        counted = {
            kind: sum(count for (_, each), count in servers.tables.counts.items() if each == kind)
            for kind in ("impression", "click")
        }
        return {
            "page views": visitors.requests,
            "page views without an answer": visitors.unserved,
            "requests answered 503": visitors.refused,
            "events sent": len(visitors.witness.sent),
            "events accepted": len(visitors.witness.accepted),
            "impressions counted": counted["impression"],
            "clicks counted": counted["click"],
            "of them not valid": sum(servers.tables.invalid_counts.values()),
            "writes to the spool": servers.disk.writes,
            "dead letters": len(servers.log.dead),
            "log entries": servers.log.appended,
            "of them groups of events": servers.log.groups,
            "of them refused by their id at first": servers.log.refused,
            "log entries trimmed": servers.log.trimmed,
        }


def simulate(plan: EventLogPlan, on_seconds: Callable[[float], object] = lambda _: None) -> Outcome:
    """Run a plan; `on_seconds` is told how many are simulated, visitor by visitor."""
    return run_world(lambda plan: World(plan, on_seconds), plan)


def _find_traffic_share(seconds: float) -> float:
    return 1 + 0.8 * math.sin(2 * math.pi * (seconds / DAY_SECONDS - 0.5))
