"""One run of the market: campaigns come, change and end while messages are lost and actors are killed.

Checks that every active campaign is in every bidder of its categories within 60 s after that, and no other is.
"""

from collections.abc import Generator
from hashlib import sha256
from random import Random  # noqa: TID251 - for its type
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.campaign.demand import DIRECTORY, CampaignDemand, WantedCreative
from adloom.budgets.messages import CheckClock
from adloom.core.ids import AdvertiserId, BannerId, CampaignId
from adloom.core.money import Micros
from adloom.market.routing import STRIPES, make_bidder_address
from simulation.base_world import Outcome
from simulation.loop import make_random
from simulation.market.network import Campaigns, Network

CATEGORIES: Final = ("483", "539", "210", "422")
CAMPAIGNS: Final = 12
STEPS: Final = 60
STEP_SECONDS: Final = 10.0
KNOWN_SECONDS_MAX: Final = 60.0
UNIT: Final = 1_000_000


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
    killed = live_through(network, campaigns, faults)
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


def live_through(network: Network, campaigns: Campaigns, faults: MarketFaults) -> tuple[int, int]:
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
