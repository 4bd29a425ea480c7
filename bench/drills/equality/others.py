"""The same messages to advertisers, sites and the contextual market on both hosts.

Advertisers and sites answer, so each round is applied before the next. The market's actors only tell each other: its
rows are compared when nothing more comes of them. They have no stored states, so their rows are the truth.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random  # noqa: TID251 - seeded
from typing import Any, Final, NamedTuple

import msgspec

from adloom.auction.site_modes import ApprovalMode
from adloom.budgets.addresses import ADVERTISER, make_advertiser_address
from adloom.budgets.campaign.demand import (
    DIRECTORY,
    CampaignDemand,
    CampaignGone,
    CampaignReady,
    WantedCreative,
)
from adloom.budgets.kinds import make_kinds as make_budget_kinds
from adloom.budgets.messages import AskBudget, CheckClock, ConfigureAdvertiser, DayTotal, SpendReport
from adloom.budgets.money.store import MoneyWriter
from adloom.core.clock import ManualClock, SystemClock
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, SiteId, SystemIds
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules
from adloom.market.auctioneer.state import (
    AuctionSlot,
    ConfigureAuctions,
    PageForSale,
    PagesClassified,
    SiteTerms,
)
from adloom.market.kinds import make_kinds as make_market_kinds
from adloom.market.messages import RecordResults
from adloom.market.routing import EVERYWHERE, make_auctioneer_address, make_ranker_address
from adloom.market.store import MarketWriter
from adloom.pages.follow.page_table import PageEntry
from adloom.pages.model import PageCategory
from adloom.pages.site.messages import (
    SITE,
    ChangePages,
    CheckSite,
    ConfigureSite,
    SiteConfig,
    make_site_address,
)
from adloom.pages.site.step import SiteKind
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Connection, Pool
from bench.drills.equality.hosts import (
    Message,
    NoFirstMessages,
    PlayedHost,
    PlayedKinds,
    ask_all,
    read_states,
    run_local,
    run_shared,
)
from bench.drills.result import DrillError, Figures, require
from simulation.loop import make_random

ADVERTISERS, SITES, CAMPAIGNS, ROUNDS = 3, 2, 8, 10
CATEGORIES: Final = ("483", "539", "240")
UNIT: Final = 1_000_000
ROUND: Final = timedelta(seconds=2)
SOMETIMES: Final = 0.2
QUIET_ROUNDS: Final = 15  # More than a change takes on its way to a shortlist, or to a ranker's row.
SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.05
INSERT_SITE: Final = "INSERT INTO sites (public_id, domain, name) VALUES ($1, $2, $2)"
TABLES: Final = {
    "demands": "SELECT campaign_id, version, demand::text FROM contextual_demand ORDER BY 1",
    "categories": "SELECT category, version FROM demand_versions ORDER BY 1",
    "results": "SELECT category, site, impressions, clicks, at, through FROM category_results ORDER BY 1, 2",
    "shortlists": "SELECT site_id, url, slots::text, expires_at FROM shortlists ORDER BY 1, 2",
    "days": "SELECT kind, id, day, spent_micros FROM spend_days ORDER BY 1, 2, 3",
}
CLEAR: Final = """
    TRUNCATE brain_states, spend_days, contextual_demand, demand_versions, category_results, shortlists
"""

Rows = dict[str, list[tuple[Any, ...]]]


class AllRecords:
    """Writes what actors of any kind record."""

    def __init__(self) -> None:
        self._money = MoneyWriter(SystemClock())
        self._market = MarketWriter()

    async def write(self, connection: Connection, records: Sequence[msgspec.Struct]) -> None:
        money = [one for one in records if isinstance(one, DayTotal)]
        await self._money.write(connection, money)
        await self._market.write(connection, [one for one in records if not isinstance(one, DayTotal)])


class _Names(NamedTuple):
    """Who gets messages."""

    advertisers: list[AdvertiserId]
    sites: list[SiteId]
    campaigns: list[CampaignId]

    @property
    def asked(self) -> list[Message]:
        """Questions whose answers tell that all before them was applied."""
        return [
            *((make_advertiser_address(one), AskBudget()) for one in self.advertisers),
            *((make_site_address(one), CheckSite()) for one in self.sites),
        ]

    @property
    def woken(self) -> list[Address]:
        rankers = [
            make_ranker_address(category, site)
            for category in CATEGORIES
            for site in (EVERYWHERE, *map(str, self.sites))
        ]
        return [DIRECTORY, *map(make_auctioneer_address, self.sites), *rankers]


async def compare_others(nats_url: str, pool: Pool, *, seed: int) -> Figures:
    """Play a log on both hosts; states, answers and rows must be equal."""
    began_at, ids = SystemClock().now(), SystemIds()
    names = _Names(
        [AdvertiserId(ids.make()) for _ in range(ADVERTISERS)],
        [SiteId(ids.make()) for _ in range(SITES)],
        [CampaignId(ids.make()) for _ in range(CAMPAIGNS)],
    )
    for number, site_id in enumerate(names.sites):
        await pool.execute(INSERT_SITE, site_id, f"equal-{site_id.hex}-{number}.test")
    log = _make_log(seed, names, began_at)
    kinds = [*make_budget_kinds(), SiteKind(), *make_market_kinds()]
    stored = [one for one in kinds if one.name in {ADVERTISER, SITE}]
    played = PlayedKinds(kinds, AllRecords(), NoFirstMessages())

    await pool.execute(CLEAR)
    clock = ManualClock(began_at)
    async with run_local(pool, played, clock) as host:
        said = await _play(host, log, clock, names)
        for _ in range(QUIET_ROUNDS):
            await _let_pass(host, clock, names)
        rows = await _read_rows(pool)
    states = await read_states(pool, stored)
    await pool.execute(CLEAR)
    clock = ManualClock(began_at)
    async with run_shared(nats_url, pool, played, clock) as host:
        said_there = await _play(host, log, clock, names)
        await _wait_for_rows(host, clock, names, pool, rows)
    states_there = await read_states(pool, stored)
    await pool.execute(CLEAR)

    require(is_so=len(states) == ADVERTISERS + SITES, what=f"only {sorted(states)} have states")
    require(
        is_so=all(rows.values()), what=f"nothing was recorded of {[one for one in rows if not rows[one]]}"
    )
    require(is_so=said_there == said, what="advertisers or sites answer otherwise on NATS")
    require(is_so=states_there == states, what="advertisers or sites have other states on NATS")
    return {
        "messages to others": sum(map(len, log)),
        "equal advertisers and sites": len(states),
        **{f"equal {name}": len(its) for name, its in rows.items()},
    }


async def _play(
    host: PlayedHost, log: Sequence[Sequence[Message]], clock: ManualClock, names: _Names
) -> list[Any]:
    """Send rounds one after another, each at one time of the clock; return all answers."""
    said: list[Any] = []
    for sent in log:
        for address, message in sent:
            require(is_so=host.tell(address, message), what="a message was refused")
        said += await _let_pass(host, clock, names)
    return said


async def _let_pass(host: PlayedHost, clock: ManualClock, names: _Names) -> list[Any]:
    """Wait until advertisers and sites have all messages, and let the market look at a later time."""
    said = await ask_all(host, names.asked)
    clock.advance(ROUND)
    for address in names.woken:
        host.tell(address, CheckClock())
    return said


async def _wait_for_rows(
    host: PlayedHost, clock: ManualClock, names: _Names, pool: Pool, wanted: Rows
) -> None:
    """Let time pass until the rows are the same."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + SECONDS_MAX
    while (found := await _read_rows(pool)) != wanted:
        if loop.time() > ends_at:
            unequal = [name for name in wanted if found[name] != wanted[name]]
            raise DrillError(f"the market has other {', '.join(unequal)} on NATS: {found}, not {wanted}")
        await _let_pass(host, clock, names)
        await asyncio.sleep(POLL_SECONDS)


async def _read_rows(pool: Pool) -> Rows:
    return {name: [tuple(row) for row in await pool.fetch(statement)] for name, statement in TABLES.items()}


def _make_log(seed: int, names: _Names, now: datetime) -> list[list[Message]]:
    """Make rounds of messages; each actor gets at most one in a round."""
    chance = make_random(seed, "equal others")
    rounds: list[list[Message]] = []
    for number in range(ROUNDS):
        sent: list[Message] = []
        for advertiser_id in names.advertisers:
            message = _make_advertiser_message(chance, number, advertiser_id, names, now)
            sent.append((make_advertiser_address(advertiser_id), message))
        for site_id in names.sites:
            sent.append((make_site_address(site_id), _make_site_message(chance, number, now)))
            sent.append((make_auctioneer_address(site_id), _make_auction_message(chance, number, now)))
            category = chance.choice(CATEGORIES)
            counted = RecordResults(chance.randrange(100), chance.randrange(5), now, number + 1)
            sent += [(make_ranker_address(category, one), counted) for one in (EVERYWHERE, str(site_id))]
        sent.append((DIRECTORY, _make_demand_message(chance, number, names)))
        rounds.append(sent)
    return rounds


def _make_advertiser_message(
    chance: Random,
    number: int,
    advertiser_id: AdvertiserId,
    names: _Names,
    now: datetime,
) -> msgspec.Struct:
    if number == 0 or chance.random() < SOMETIMES:
        budget = chance.choice((None, 0, 50 * UNIT))
        return ConfigureAdvertiser(
            version=number + 1,
            advertiser_id=advertiser_id,
            is_active=chance.random() > SOMETIMES,
            daily_budget=None if budget is None else Micros(budget),
            timezone="UTC",
        )
    committed = chance.randrange(5 * UNIT)
    return SpendReport(
        campaign_id=chance.choice(names.campaigns),
        incarnation=1,
        sequence=number,
        day=now.date(),
        spent_by_day={now.date(): chance.randrange(committed + 1)},
        committed=Micros(committed),
        target=Micros(committed + chance.randrange(20 * UNIT)),
        cost=Micros(1_000),
        is_needed=chance.choice((True, False)),
    )


def _make_site_message(chance: Random, number: int, now: datetime) -> msgspec.Struct:
    if number == 0 or chance.random() < SOMETIMES:
        config = SiteConfig(domain="equal.test", is_verified=chance.choice((True, False)))
        return ConfigureSite(number + 1, config)
    categories = (PageCategory(chance.choice(CATEGORIES), 0.9),)
    page = PageEntry(f"equal.test/{chance.randrange(5)}", number, categories, now, now + timedelta(hours=48))
    return ChangePages((page,))


def _make_auction_message(chance: Random, number: int, now: datetime) -> msgspec.Struct:
    if number == 0 or chance.random() < SOMETIMES:
        terms = SiteTerms(
            version=number + 1,
            domain="equal.test",
            floor=Micros(chance.randrange(UNIT)),
            slots=(AuctionSlot("top", None, None, Micros(0)),),
        )
        return ConfigureAuctions(terms, ApprovalRules(ApprovalMode.AUTOMATIC))
    categories = tuple((category, 0.5 + 0.1 * place) for place, category in enumerate(CATEGORIES))
    chosen = categories[chance.randrange(3) :]
    url = f"equal.test/{chance.randrange(5)}"
    return PagesClassified((PageForSale(url, number + 1, chosen, now + timedelta(hours=48)),))


def _make_demand_message(chance: Random, number: int, names: _Names) -> msgspec.Struct:
    campaign_id = chance.choice(names.campaigns)
    if number and chance.random() < SOMETIMES:
        return CampaignGone(campaign_id, number + 1)
    demand = CampaignDemand(
        campaign_id=campaign_id,
        advertiser_id=None,
        version=number + 1,
        max_cpm=Micros(chance.randrange(2 * UNIT, 9 * UNIT)),
        categories=tuple(sorted(chance.sample(CATEGORIES, 2))),
        creatives=(WantedCreative(BannerId(campaign_id)),),
    )
    return CampaignReady(demand)
