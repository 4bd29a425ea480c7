"""Small markets to simulate; each test names only what it is about."""

from typing import Any

import msgspec

from adloom.forecast.file.market_file import build_market
from adloom.forecast.file.parts import CampaignPart, MarketFile, PlacementPart
from adloom.forecast.market import SimulatedMarket
from adloom.forecast.market_run import MarketRun, make_chances
from adloom.forecast.result import MarketTally

HOURS = 24


def a_campaign(name: str = "Shoes", **fields: Any) -> CampaignPart:
    return msgspec.structs.replace(CampaignPart(name=name, bid=2.0, click_rate=0.1), **fields)


def a_placement(slug: str = "feed", **fields: Any) -> PlacementPart:
    return msgspec.structs.replace(PlacementPart(slug=slug, requests_a_day=500.0), **fields)


def a_market(*campaigns: CampaignPart, **fields: Any) -> SimulatedMarket:
    fields.setdefault("placements", (a_placement(),))
    return build_market(MarketFile(campaigns=campaigns or (a_campaign(),), **fields))


def simulate(market: SimulatedMarket, *, seed: int = 1, days: int = 1) -> MarketTally:
    run = MarketRun(market, market.compile_index(), make_chances(seed, 0), hours=days * HOURS)
    for _ in run.iter_hours():
        pass
    return run.tally


def spent_micros(tally: MarketTally, key: int, *, day: int = 0) -> int:
    return sum(tally.campaigns[key].spend[day * HOURS : (day + 1) * HOURS])


def shown(tally: MarketTally, key: int) -> int:
    return sum(tally.campaigns[key].impressions)
