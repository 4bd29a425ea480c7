"""The contextual market on virtual time: its actors over a network that drops, repeats, reorders and restarts."""

import heapq
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from random import Random  # noqa: TID251 - seeded
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.budgets.campaign.demand import (
    DIRECTORY,
    CampaignDemand,
    CampaignGone,
    CampaignReady,
    WantedCreative,
)
from adloom.budgets.messages import CheckClock
from adloom.core.ids import AdvertiserId, BannerId, CampaignId
from adloom.core.money import Micros
from adloom.market import bidder, ranker
from adloom.market.auctioneer import auctioneer
from adloom.market.directory import directory, distributor
from adloom.market.messages import AllDemand, CategoryDemand, CategoryVersionRow, DemandRow, LoadDemand
from adloom.market.routing import STRIPES, make_bidder_address
from adloom.market.shortlist.model import ApprovalSeen, PageShortlists
from adloom.runtime.actors.actor import Address, Publish, RecordRow, Tell, Wake
from simulation.base_world import Outcome
from simulation.loop import make_random

START = datetime(2026, 11, 17, tzinfo=UTC)
New = Callable[[str, datetime], Any]
NEW: Mapping[str, New] = {
    "directory": lambda _key, _now: directory.DirectoryState(),
    "distributor": lambda _key, _now: distributor.DistributorState(),
    "bidder": bidder.make_bidder,
    "ranker": ranker.make_ranker,
    "auctioneer": auctioneer.make_auctioneer,
}
CATEGORIES: Final = ("483", "539", "210", "422")
CAMPAIGNS: Final = 12
STEPS: Final = 60
STEP_SECONDS: Final = 10.0
KNOWN_SECONDS_MAX: Final = 60.0
UNIT: Final = 1_000_000


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


class MarketFaults(msgspec.Struct, frozen=True):
    """How often something goes wrong: most runs have little of each, some have a lot."""

    loss: float
    repetition: float
    actor_kills: float  # A step.
    worker_kills: float


def draw_faults(chance: Random) -> MarketFaults:
    return MarketFaults(
        chance.choice((0.0, 0.1, 0.5, 0.9)),
        chance.choice((0.0, 0.3, 0.9)),
        chance.choice((0.0, 0.1, 0.5)),
        chance.choice((0.0, 0.03, 0.2)),
    )


def simulate_market(seed: int) -> Outcome:
    faults = draw_faults(make_random(seed, "faults"))
    network = Network(seed)
    campaigns = Campaigns(network)
    network.send(DIRECTORY, CheckClock(), is_certain=True)
    network.loss, network.repetition = faults.loss, faults.repetition
    killed = disturb(network, campaigns, faults)
    network.loss = network.repetition = 0.0
    campaigns.repeat()
    network.run(KNOWN_SECONDS_MAX)
    return Outcome(
        seed=seed,
        figures={"campaigns that are active at the end": len(campaigns.active), "rows": len(network.rows)},
        faults={"actors killed": killed[0], "workers killed": killed[1], "messages lost": network.lost},
        violations=tuple(find_violations(network, campaigns)),
        steps=STEPS,
        digest=sha256(repr(network.rows).encode()).hexdigest()[:16],
    )


def disturb(network: Network, campaigns: Campaigns, faults: MarketFaults) -> tuple[int, int]:
    """Edit, end and kill at random; return how many actors and workers were killed."""
    chance, actors, workers = network.chance, 0, 0
    for _ in range(STEPS):
        number = chance.randrange(CAMPAIGNS)
        demand = draw_demand(number, chance)
        if chance.random() < 0.3 and demand.campaign_id in campaigns.active:  # noqa: PLR2004 - a share
            campaigns.end(demand.campaign_id)
        else:
            campaigns.put(demand)
        if network.states and chance.random() < faults.actor_kills:
            network.restart(chance.choice(list(network.states)))
            actors += 1
        if chance.random() < faults.worker_kills:
            network.restart_all()
            workers += 1
        if chance.random() < 0.3:  # noqa: PLR2004 - likewise
            campaigns.repeat()
        network.run(chance.random() * STEP_SECONDS)
    return actors, workers


def draw_demand(number: int, chance: Random) -> CampaignDemand:
    return CampaignDemand(
        campaign_id=CampaignId(UUID(int=1_000 + number)),
        advertiser_id=AdvertiserId(UUID(int=3_000 + number)),
        version=1,
        max_cpm=Micros(chance.randint(1, 9) * UNIT),
        categories=tuple(chance.sample(CATEGORIES, chance.randint(1, 3))),
        creatives=(WantedCreative(BannerId(UUID(int=2_000 + number))),),
    )


def find_violations(network: Network, campaigns: Campaigns) -> Generator[str]:
    """Compare what each bidder knows with the catalog."""
    for category in CATEGORIES:
        wanted = {
            one.campaign_id: one.max_cpm for one in campaigns.active.values() if category in one.categories
        }
        for stripe in range(STRIPES):
            state = network.states.get(make_bidder_address(category, stripe))
            known = {} if state is None else {one.campaign_id: one.max_cpm for one in state.campaigns}
            if known != wanted:
                yield f"The bidder {category}|{stripe} knows {len(known)} campaigns, the catalog has {len(wanted)}."
