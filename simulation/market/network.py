"""The actors of the market on virtual time, with a network that may drop, repeat, reorder and restart."""

import heapq
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - seeded
from typing import Any

import msgspec

from adloom.budgets.campaign.demand import DIRECTORY, CampaignDemand, CampaignGone, CampaignReady
from adloom.budgets.messages import CheckClock
from adloom.core.ids import CampaignId
from adloom.market.auctioneer import auctioneer
from adloom.market.bidder import bidder
from adloom.market.directory import directory, distributor
from adloom.market.messages import AllDemand, CategoryDemand, CategoryVersionRow, DemandRow, LoadDemand
from adloom.market.ranker import ranker
from adloom.market.shortlist.model import ApprovalSeen, PageShortlists
from adloom.runtime.actors.actor import Address, Publish, RecordRow, Tell, Wake

START = datetime(2026, 11, 17, tzinfo=UTC)

New = Callable[[str, datetime], Any]
NEW: Mapping[str, New] = {
    "directory": lambda _key, _now: directory.DirectoryState(),
    "distributor": lambda _key, _now: distributor.DistributorState(),
    "bidder": bidder.make_bidder,
    "ranker": ranker.make_ranker,
    "auctioneer": auctioneer.make_auctioneer,
}


class Network:
    """Runs steps; what is in memory can be lost, what was recorded stays."""

    def __init__(self, seed: int, *, ancestors: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self.chance = Random(seed)  # noqa: S311 - no secret is made of it
        above = ancestors or {}
        self._steps: dict[str, Any] = {
            "directory": directory.step,
            "distributor": distributor.step,
            "bidder": bidder.step,
            "ranker": ranker.step,
            "auctioneer": auctioneer.make_step(lambda category: above.get(category, ())),
        }
        self.now = START
        self.states: dict[Address, Any] = {}
        self.alarms: dict[Address, datetime] = {}
        self._queue: list[tuple[datetime, float, Address, msgspec.Struct]] = []
        self.loss = self.repetition = 0.0
        self.lost = 0
        self.delay = timedelta(milliseconds=5)
        # The tables.
        self.demands: dict[CampaignId, DemandRow] = {}
        self.versions: dict[str, int] = {}
        self.shortlists: dict[str, PageShortlists] = {}
        self.approvals: list[ApprovalSeen] = []
        self.rows: list[msgspec.Struct] = []
        self.notices: list[msgspec.Struct] = []

    def send(self, to: Address, message: msgspec.Struct, *, is_certain: bool = False) -> None:
        copies = (
            1
            if is_certain
            else (self.chance.random() >= self.loss) + (self.chance.random() < self.repetition)
        )
        self.lost += copies == 0
        for _ in range(copies):
            at = self.now + self.delay * self.chance.random() * 2
            heapq.heappush(self._queue, (at, self.chance.random(), to, message))

    def restart(self, address: Address) -> None:
        self.states.pop(address, None)
        self.alarms.pop(address, None)

    def restart_all(self) -> None:
        """Kill the process: all messages and states in memory are lost."""
        self._queue.clear()
        for address in list(self.states):
            self.restart(address)
        self.send(DIRECTORY, CheckClock(), is_certain=True)

    def run(self, seconds: float) -> None:
        until = self.now + timedelta(seconds=seconds)
        while (at := self._find_next_at()) is not None and at <= until:
            self.now = max(self.now, at)
            self._run_due()
        self.now = until

    def _find_next_at(self) -> datetime | None:
        times = [*self.alarms.values(), *(self._queue[0][:1] if self._queue else ())]
        return min(times, default=None)

    def _run_due(self) -> None:
        due = [address for address, at in self.alarms.items() if at <= self.now]
        for address in due:
            del self.alarms[address]
            self.step(address, CheckClock())
        while self._queue and self._queue[0][0] <= self.now:
            _, _, to, message = heapq.heappop(self._queue)
            self.step(to, message)

    def step(self, address: Address, message: msgspec.Struct) -> None:
        if address not in self.states:
            self.states[address] = NEW[address.kind](address.key, self.now)
            for first in self._list_first_messages(address):
                self.run_step(address, first)
        self.run_step(address, message)

    def _list_first_messages(self, address: Address) -> list[msgspec.Struct]:
        bidding = [row.demand for row in self.demands.values() if row.demand is not None]
        if address == DIRECTORY:
            return [LoadDemand(tuple(bidding), dict(self.versions))]
        if address.kind == "bidder":
            category = address.key.rpartition("|")[0]
            wanting = tuple(one for one in bidding if category in one.wanted)
            return [CategoryDemand(category, self.versions.get(category, 0), wanting)]
        return []

    def run_step(self, address: Address, message: msgspec.Struct) -> None:
        state, effects = self._steps[address.kind](self.states[address], message, self.now, self.chance)
        self.states[address] = state
        for effect in effects:
            match effect:
                case Tell(to=to, message=said):
                    self.send(to, said)
                case Wake(at=at):
                    self.alarms.pop(address, None)
                    if at is not None:
                        self.alarms[address] = at
                case RecordRow(row=row):
                    self.record(row)
                case Publish(message=said):
                    self.notices.append(said)
                case _:
                    raise AssertionError(effect)

    def record(self, row: msgspec.Struct) -> None:
        self.rows.append(row)
        match row:
            case DemandRow():
                known = self.demands.get(row.campaign_id)
                if known is None or known.version <= row.version:
                    self.demands[row.campaign_id] = row
            case CategoryVersionRow():
                self.versions[row.category] = max(row.version, self.versions.get(row.category, 0))
            case PageShortlists():
                self.shortlists[row.url] = row
            case ApprovalSeen():
                self.approvals.append(row)
            case _:
                pass


class Campaigns:
    """The catalog, and the campaigns' actors: they say what they are until the directory has heard it."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.active: dict[CampaignId, CampaignDemand] = {}
        self.version = 0

    def put(self, demand: CampaignDemand) -> None:
        self.version += 1
        demand = msgspec.structs.replace(demand, version=self.version)
        self.active[demand.campaign_id] = demand
        self._network.send(DIRECTORY, CampaignReady(demand))

    def end(self, campaign_id: CampaignId) -> None:
        self.version += 1
        del self.active[campaign_id]
        self._network.send(DIRECTORY, CampaignGone(campaign_id, self.version))

    def repeat(self) -> None:
        """Say all of it again, as the follower of the catalog does."""
        demands = tuple(msgspec.structs.replace(one, version=self.version) for one in self.active.values())
        self._network.send(DIRECTORY, AllDemand(self.version, demands))
