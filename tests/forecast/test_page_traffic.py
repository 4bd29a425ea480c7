"""Contextual slots of an installation: what is counted of their requests, and what a simulation makes of it."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from adloom.budgets.traffic.page_recorder import PageTrafficRecorder
from adloom.cli.simulate.commands import app
from adloom.core.clock import ManualClock
from adloom.core.money import Micros
from adloom.forecast.live.page_traffic import (
    KINDS_MAX,
    Kind,
    PageVisits,
    expand_wanted,
    find_seen_share,
    group_pages,
    share_kinds,
)
from adloom.forecast.live.rows import build_live_market
from adloom.forecast.live.store import read_installation
from adloom.forecast.what_if.wording import round_to_step
from adloom.pages.model import PageCategory
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.serving.background.page_traffic import PageTraffic
from tests.forecast.markets import simulate
from tests.forecast.test_what_if_routes import COUNTS, InProcessRunner, ask
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane
from tests.support.pages import insert_approval

SPORTS, SOCCER, FOOD = "483", "533", "210"
HOUR = timedelta(hours=1)


@pytest.fixture
def runner(control: ControlPlane) -> InProcessRunner:
    control.app.state.what_if = runner = InProcessRunner()
    return runner


@dataclass
class ContextualSite:
    """A site with a slot, and pages that are classified."""

    admin: Client
    pool: Pool
    valkey: Valkey
    site: Json
    slot: Json
    key: int  # Of the slot.

    async def add_page(self, path: str, *categories: str) -> str:
        """Add a page, and return its normalised URL."""
        given = [{"id": one, "confidence": 0.9} for one in categories]
        body = {"url": f"https://{self.site['domain']}{path}", "categories": given}
        answer = await self.admin.post(f"/admin/sites/{self.site['id']}/pages", json=body)
        assert answer.status_code in {200, 201}, answer.text
        return f"{self.site['domain']}{path}"

    async def add_campaign(self, client: Client, *categories: str, **fields: Any) -> tuple[Json, Json]:
        """Add a campaign that runs, with one banner that the site has approved."""
        campaign = await client.make_campaign(categories=list(categories), **fields)
        banner = await client.make_banner()
        await client.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
        active = await client.patch(f"/admin/campaigns/{campaign['id']}/activate")
        assert active.status_code == 200, active.text
        await insert_approval(
            self.pool, self.site["id"], banner["id"], campaign["id"], at=NOON, state="approved"
        )
        return campaign, banner

    async def count(self, *urls: str, hourly: int = 6, until: datetime = NOON) -> None:
        """Count a week of requests: in each hour as many for each page, all of them filled."""
        clock = ManualClock(until - 168 * HOUR)
        traffic = PageTraffic(self.valkey, clock)
        recorder = PageTrafficRecorder(self.pool, self.valkey, clock)
        for hour in range(168):
            for url in urls:
                for _ in range(hourly):
                    traffic.count(self.key, url, is_filled=True)
            await traffic.add()
            clock.advance(HOUR)
            if hour % 24 == 0:
                await recorder.record()
        await recorder.record()

    async def see(self, ad: tuple[Json, Json], *, hourly: int, until: datetime = NOON) -> None:
        """Count a week of impressions of an ad, from two countries."""
        campaign, banner = ad
        ids = [UUID(one["id"]) for one in (banner, self.slot, campaign)]
        await self.pool.execute(COUNTS, *ids, hourly, until)


@pytest.fixture
async def contextual(admin: Client, pool: Pool, valkey: Valkey) -> ContextualSite:
    site = await admin.make_site()
    slot = await admin.make_placement(delivery="contextual", siteId=site["id"], floorCpm=0.5)
    key = await pool.fetchval("SELECT id FROM placements WHERE public_id = $1::text::uuid", slot["id"])
    return ContextualSite(admin, pool, valkey, site, slot, key)


async def read_counts(pool: Pool, slot: int) -> tuple[tuple[int, int], dict[str, int]]:
    total = await pool.fetchrow(
        "SELECT coalesce(sum(requests), 0)::int, coalesce(sum(filled), 0)::int FROM slot_requests"
        " WHERE placement_id = $1",
        slot,
    )
    pages = await pool.fetch(
        "SELECT page.url, sum(it.requests)::int FROM page_requests AS it"
        " JOIN site_pages AS page ON page.id = it.page_id WHERE it.placement_id = $1 GROUP BY 1",
        slot,
    )
    assert total is not None
    return (total[0], total[1]), {row[0]: row[1] for row in pages}


async def test_requests_are_counted_once_by_hour_and_by_page(contextual: ContextualSite) -> None:
    pool, valkey, slot = contextual.pool, contextual.valkey, contextual.key
    match, bread = await contextual.add_page("/match", SPORTS), await contextual.add_page("/bread", FOOD)
    clock = ManualClock(NOON)
    traffic = PageTraffic(valkey, clock, pages_a_day_max=2)
    recorder = PageTrafficRecorder(pool, valkey, clock)

    for url, is_filled in ((match, True), (match, False), (bread, True), ("gone.example/", True)):
        traffic.count(slot, url, is_filled=is_filled)
    traffic.count(10**8, match, is_filled=True)  # A placement that is gone.
    await traffic.add()
    await traffic.add()  # Nothing more.
    for _ in range(2):
        await recorder.record()
    first = await read_counts(pool, slot)
    clock.advance(timedelta(hours=20))  # Tomorrow; what was counted today comes first.
    traffic.count(slot, bread, is_filled=False)
    await traffic.add()
    await recorder.record()
    second = await read_counts(pool, slot)
    hours = await pool.fetchval("SELECT count(*) FROM slot_requests WHERE placement_id = $1", slot)
    await valkey.flushdb()
    clock.advance(timedelta(hours=1))
    traffic.count(slot, bread, is_filled=False)
    await traffic.add()
    await recorder.record()  # Valkey has lost what it had: nothing is taken back.
    third = await read_counts(pool, slot)
    clock.advance(timedelta(days=20))
    await recorder.record()

    assert first == ((4, 3), {match: 2, bread: 1})  # The third page of the day counts for the slot only.
    assert second == ((5, 3), {match: 2, bread: 2})
    assert hours == 2
    assert third == ((6, 3), {match: 2, bread: 2})
    assert await read_counts(pool, slot) == ((0, 0), {})


visits = st.lists(
    st.builds(
        PageVisits,
        placement_key=st.integers(1, 3),
        site_key=st.integers(1, 2),
        url=st.text("abc", min_size=1, max_size=3),
        categories=st.lists(
            st.builds(PageCategory, st.sampled_from([SPORTS, FOOD]), st.floats(0.1, 1)), max_size=2
        ).map(tuple),
        requests=st.integers(1, 1_000),
        fits=st.booleans(),
    ),
    max_size=30,
)


@given(visits, st.integers(1, 40))
def test_pages_that_are_kept_have_all_requests_of_those_they_stand_for(
    found: list[PageVisits], pages_max: int
) -> None:
    shares = group_pages(found, pages_max=pages_max)

    of_slot = defaultdict[int, float](float)
    for one in shares:
        of_slot[one.placement_key] += one.share
    assert len({(one.page.site_key, one.page.categories) for one in shares}) <= pages_max
    assert all(share <= 1 + 1e-9 for share in of_slot.values())
    if len(found) <= pages_max // 4:
        asked = {one.placement_key for one in found}
        assert all(of_slot[slot] == pytest.approx(1) for slot in asked)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["DE", "FR", None]), st.sampled_from(["a", "b", "c", None])),
        st.integers(0, 99),
    )
)
def test_kinds_of_visitors_are_all_of_them(seen: dict[Kind, int]) -> None:
    shares = share_kinds(seen)

    assert sum(share for _, share in shares) == pytest.approx(1)
    assert len(shares) <= KINDS_MAX + 1


def test_what_was_not_seen_does_not_count() -> None:
    assert [find_seen_share(*one) for one in ((10, 5), (10, 20), (0, 3))] == [0.5, 1.0, 1.0]


def test_a_campaign_wants_all_below_its_categories() -> None:
    wanted = expand_wanted([SPORTS], takes_filler=False)

    assert wanted.fits([PageCategory(SOCCER, 0.5)])
    assert not wanted.fits([PageCategory(FOOD, 0.9)])
    assert not wanted.fits([])
    assert expand_wanted([], takes_filler=True).fits([])
    limited = expand_wanted([SPORTS], takes_filler=True, excluded=[FOOD])
    assert limited.fits([PageCategory(SOCCER, 0.5)])
    assert not limited.fits([PageCategory(SOCCER, 0.5), PageCategory(FOOD, 0.2)])


async def test_contextual_slots_are_simulated_and_a_rivals_bid_stays_secret(
    contextual: ContextualSite, admin: Client, advertiser: Client, runner: InProcessRunner
) -> None:
    match, bread = await contextual.add_page("/match", SOCCER), await contextual.add_page("/bread", FOOD)
    campaign, _ = await contextual.add_campaign(advertiser, SPORTS, bidAmount=1.2345)
    rival = await contextual.add_campaign(admin, SPORTS, FOOD, bidAmount=2.3456)
    await contextual.count(match, bread)
    await contextual.see(rival, hourly=3)

    higher = await ask(advertiser, campaign, bidAmount=8)
    question = runner.question
    wider = await ask(advertiser, campaign, categories=[SPORTS, FOOD])

    # Seen were 16 hours of 3 and 8 of 1, from two countries; half of that on each page.
    seen = 2 * (16 * 3 + 8) / 2
    before = higher["before"]["impressions"]["mean"]
    assert higher["isEnough"], higher["sentence"]
    assert 0 < before < 0.8 * seen
    assert before < higher["after"]["impressions"]["mean"] <= 1.2 * seen
    assert higher["difference"]["impressions"]["low"] > 0
    assert wider["after"]["impressions"]["mean"] > 1.5 * before
    assert "In contextual slots it would reach" in higher["sentence"]
    assert any("are taken for one" in note for note in higher["notes"])
    assert question is not None
    assert {cell.page for cell in question.market.cells} == {match, bread}
    bids = {row.assignment.bid for row in question.market.creatives}
    assert bids == {1_234_500, round_to_step(Micros(2_345_600))}


@pytest.mark.usefixtures("runner")
async def test_other_exclusions_are_simulated_on_the_pages_that_they_open_and_close(
    contextual: ContextualSite, admin: Client
) -> None:
    match, stadium = (
        await contextual.add_page("/match", SOCCER),
        await contextual.add_page("/eat", SPORTS, FOOD),
    )
    campaign, banner = await contextual.add_campaign(admin, SPORTS, bidAmount=8, excludedCategories=[FOOD])
    await contextual.count(match, stadium)
    await contextual.see((campaign, banner), hourly=3)

    wider = await ask(admin, campaign, excludedCategories=[])
    other = await ask(admin, campaign, excludedCategories=[SOCCER])

    assert wider["contextual"] == {"before": {"pages": 2, "reached": 1}, "after": {"pages": 2, "reached": 2}}
    assert wider["after"]["impressions"]["mean"] > 1.5 * wider["before"]["impressions"]["mean"]
    assert other["contextual"]["after"] == {"pages": 2, "reached": 1}
    assert other["after"]["impressions"]["mean"] > 0


@pytest.mark.usefixtures("runner")
async def test_slots_that_may_not_show_it_bring_nothing(
    contextual: ContextualSite, admin: Client, pool: Pool
) -> None:
    match = await contextual.add_page("/match", SPORTS, FOOD)
    campaign, banner = await contextual.add_campaign(admin, SPORTS, bidAmount=1)
    path = f"/admin/campaigns/{campaign['id']}"
    await contextual.count(match)
    await contextual.see((campaign, banner), hourly=3)

    await admin.patch(path, json={"excludedCategories": [FOOD]})
    excluded = await ask(admin, campaign, bidAmount=2)
    await admin.patch(path, json={"excludedCategories": []})
    await pool.execute("UPDATE site_approvals SET state = 'rejected'")
    refused = await ask(admin, campaign, bidAmount=2)
    await pool.execute("UPDATE sites SET is_suspended = true")
    suspended = await ask(admin, campaign, bidAmount=2)

    assert not excluded["isEnough"]
    assert excluded["contextual"]["after"] == {"pages": 1, "reached": 0}
    assert refused["isEnough"]
    assert refused["after"]["impressions"]["mean"] == 0
    assert not suspended["isEnough"]


async def test_the_whole_installation_has_its_contextual_slots(
    contextual: ContextualSite,
    admin: Client,
    pool: Pool,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    match = await contextual.add_page("/match", SPORTS)
    ad = await contextual.add_campaign(admin, SPORTS, bidAmount=2, name="Rackets", budgetDailyPaisa=500)
    await contextual.count(match, until=hour)
    await contextual.see(ad, hourly=3, until=hour)
    await pool.execute("UPDATE site_pages SET expires_at = now() + interval '1 day'")
    monkeypatch.setenv("DATABASE_URL", database_url)

    async with pool.acquire() as connection:
        market = build_live_market(await read_installation(connection, now=hour))
    arguments = ["--live", "--runs", "2", "--what-if", "campaign Rackets: categories 210"]
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    tally = simulate(market)

    assert [one.url for one in market.pages] == [match]
    assert tally.filled > 0.9 * tally.requests > 0
    assert result.exit_code == 0, result.output
    assert "Rackets" in result.output
