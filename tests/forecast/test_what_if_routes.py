"""What a change of a campaign would bring, over HTTP: from a copy of the catalog and seven days of counts."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import chain, repeat
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from typer.testing import CliRunner

from adloom.cli.simulate.commands import app
from adloom.core.errors import RateLimitedError, UnavailableError
from adloom.core.money import Micros
from adloom.events.ctr.store import FIRST_STATE, LEARNING
from adloom.forecast.live.rows import build_live_market
from adloom.forecast.live.store import read_installation
from adloom.forecast.market import SimulatedMarket
from adloom.forecast.market_run import simulate_runs
from adloom.forecast.result import MarketOutcome, RunPlan
from adloom.forecast.what_if.question import (
    TOO_FEW_OFFERS,
    Speed,
    WhatIfQuestion,
    WhatIfResult,
    answer,
    choose_part,
    choose_share,
    find_least_share,
)
from adloom.forecast.what_if.runner import WhatIfRunner
from adloom.forecast.what_if.wording import STEPS_A_DECADE, blur_rivals, describe_unseen, round_to_step
from adloom.runtime.postgres import Pool
from tests.forecast.markets import a_campaign, a_market, simulate
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane, problem

# Seven full days, more by day than by night, most of them German.
COUNTS = """
    INSERT INTO events.event_counts (
        hour, banner_id, placement_id, campaign_id, country_code, device_type, impressions, clicks
    )
    SELECT hour, banner.id, placement.id, campaign.id, country, 'mobile',
           CASE WHEN extract(hour FROM hour AT TIME ZONE 'UTC') >= 8 THEN $4 ELSE 1 END, 0
      FROM generate_series($5::timestamptz - interval '168 hours', $5 - interval '1 hour', interval '1 hour') AS hour,
           unnest(ARRAY['DE', 'FR']) AS country, banners AS banner, placements AS placement, campaigns AS campaign
     WHERE banner.public_id = $1 AND placement.public_id = $2 AND campaign.public_id = $3
"""


def _simulate(
    market: SimulatedMarket, changed: SimulatedMarket | None, plan: RunPlan, is_late: Callable[[int], bool]
) -> MarketOutcome:
    return simulate_runs(
        market, changed, msgspec.structs.replace(plan, runs=min(2, plan.runs)), is_late=is_late
    )


class InProcessRunner(WhatIfRunner):
    """Simulates here, with fewer runs, and keeps the last question."""

    question: WhatIfQuestion | None = None

    async def run(self, question: WhatIfQuestion, account_id: UUID | None) -> WhatIfResult:
        """Pass the question through the encoding that a process gets it in."""
        del account_id
        self.question = msgspec.msgpack.decode(msgspec.msgpack.encode(question), type=WhatIfQuestion)
        return answer(self.question, _simulate, lambda: 0.0)


@pytest.fixture
def runner(control: ControlPlane) -> InProcessRunner:
    control.app.state.what_if = runner = InProcessRunner()
    return runner


async def make_ad(client: Client, admin: Client, placement: Json, **fields: Any) -> tuple[Json, Json]:
    """Make a campaign that runs on a placement, and return it with its banner."""
    campaign = await client.make_campaign(**fields)
    banner = await client.make_banner()
    await client.link(campaign, placement)
    await client.assign(campaign, placement, banner)
    await admin.post(
        f"/admin/placements/{placement['id']}/links/{campaign['id']}", json={"decision": "accept"}
    )
    active = await client.patch(f"/admin/campaigns/{campaign['id']}/activate")
    assert active.status_code == 200, active.text
    return campaign, banner


async def count(
    pool: Pool, placement: Json, ad: tuple[Json, Json], *, by_day: int = 6, until: datetime = NOON
) -> None:
    campaign, banner = ad
    ids = [UUID(one["id"]) for one in (banner, placement, campaign)]
    await pool.execute(COUNTS, *ids, by_day, until)


async def ask(client: Client, campaign: Json, **changes: Any) -> Json:
    found = await client.post(f"/admin/campaigns/{campaign['id']}/what-if", json=changes)
    assert found.status_code == 200, found.text
    return found.json()


@pytest.mark.usefixtures("runner")
async def test_a_higher_bid_wins_what_the_rival_has(admin: Client, pool: Pool) -> None:
    placement = await admin.make_placement(delivery="auction", floorCpm=0.5)
    campaign, _ = await make_ad(admin, admin, placement, bidAmount=1, budgetDailyPaisa=500)
    await count(pool, placement, await make_ad(admin, admin, placement, bidAmount=2))

    found = await ask(admin, campaign, bidAmount=3)
    unseen = await ask(admin, campaign, bidAmount=1.5)

    assert unseen["isEnough"]
    assert "not shown at all" in unseen["sentence"]
    assert "Others win its requests" in unseen["sentence"]
    assert "one in 8 requests could be simulated" in describe_unseen(1 / 8)
    assert found["isEnough"]
    assert found["before"]["impressions"]["mean"] == 0
    # 16 hours of 6 and 8 of 1, from two countries.
    assert found["after"]["impressions"]["mean"] == pytest.approx(208, rel=0.1)
    assert found["difference"]["impressions"]["low"] > 100
    assert found["after"]["price"]["mean"] == pytest.approx(2.01, abs=0.01)
    assert "in place of 0" in found["sentence"]
    assert len(found["hours"]) == 24
    assert found["hours"][12]["after"]["mean"] > 2 * found["hours"][3]["after"]["mean"]
    assert (found["days"], found["sampledShare"]) == (7, 1)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"budgetDailyPaisa": 10}, 50.0),
        ({"targeting": [{"ruleType": "country", "operator": "in", "value": ["DE"]}]}, 104.0),
        ({"startsAt": "2026-11-30T00:00:00Z"}, 0.0),
        ({"endsAt": "2026-11-16T00:00:00Z"}, 0.0),
    ],
    ids=["budget", "targeting", "starts", "ends"],
)
@pytest.mark.usefixtures("runner")
async def test_budgets_targeting_and_dates_are_simulated(
    changes: Json, expected: float, admin: Client, pool: Pool
) -> None:
    placement = await admin.make_placement(delivery="auction", floorCpm=2)
    ad = await make_ad(admin, admin, placement, bidAmount=2, pacingStrategy="Accelerated")
    await count(pool, placement, ad)

    found = await ask(admin, ad[0], **changes)

    assert found["before"]["impressions"]["mean"] == pytest.approx(208, rel=0.1)
    assert found["after"]["impressions"]["mean"] == pytest.approx(expected, rel=0.15)


async def test_categories_change_how_many_pages_are_reached(admin: Client, runner: InProcessRunner) -> None:
    site = await admin.make_site()
    page = {"url": f"https://{site['domain']}/", "categories": [{"id": "483", "confidence": 1}]}
    await admin.post(f"/admin/sites/{site['id']}/pages", json=page)
    campaign = await admin.make_campaign(bidAmount=2)

    plain = await ask(admin, campaign, bidAmount=3)
    found = await ask(admin, campaign, categories=["483"])

    assert plain["contextual"] is None
    assert found["contextual"]["before"] == {"pages": 0, "reached": 0}
    assert found["contextual"]["after"]["pages"] >= 1
    assert "In contextual slots it would reach" in found["sentence"]
    assert any("nobody has asked for an ad on such a page" in note for note in found["notes"])
    assert not found["isEnough"]
    assert runner.question is None


@pytest.mark.usefixtures("runner")
async def test_a_category_that_the_campaign_excludes_is_refused(admin: Client) -> None:
    campaign = await admin.make_campaign(bidAmount=2, excludedCategories=["483"])

    for changes in ({"categories": ["539"]}, {"categories": ["210"], "excludedCategories": ["210"]}):
        refused = await admin.post(f"/admin/campaigns/{campaign['id']}/what-if", json=changes)

        errors = problem(refused, 400, "VALIDATION_FAILED")["errors"]
        assert [one["field"] for one in errors] == ["excludedCategories"]
        assert "no page would be left" in errors[0]["message"]


async def test_too_little_traffic_is_said_and_not_guessed(
    admin: Client, pool: Pool, runner: InProcessRunner
) -> None:
    placement = await admin.make_placement(delivery="auction")
    ad = await make_ad(admin, admin, placement, bidAmount=2)
    await count(pool, placement, ad, by_day=1)

    found = await ask(admin, ad[0], bidAmount=3)

    assert not found["isEnough"]
    assert found["sentence"].startswith("Not enough traffic yet")
    assert found["before"] is None
    assert runner.question is None


@pytest.mark.usefixtures("runner")
async def test_a_campaign_that_is_not_started_is_simulated_as_if_it_ran(admin: Client, pool: Pool) -> None:
    placement = await admin.make_placement(delivery="direct")
    await count(pool, placement, await make_ad(admin, admin, placement, bidAmount=1))
    draft = await admin.make_campaign(bidAmount=1, priority=9)
    await admin.link(draft, placement)
    await admin.assign(draft, placement, await admin.make_banner())

    found = await ask(admin, draft, budgetDailyPaisa=1_000)

    assert found["after"]["impressions"]["mean"] > 100


async def test_an_account_asks_about_its_own_and_learns_no_rivals_bid(
    admin: Client, pool: Pool, advertiser: Client, runner: InProcessRunner
) -> None:
    placement = await admin.make_placement(delivery="auction", floorCpm=0.5)
    mine, _ = await make_ad(advertiser, admin, placement, bidAmount=1.2345)
    rival = await make_ad(admin, admin, placement, bidAmount=2.3456)
    await count(pool, placement, rival)

    found = await ask(advertiser, mine, bidAmount=5)
    foreign = await advertiser.post(f"/admin/campaigns/{rival[0]['id']}/what-if", json={"bidAmount": 5})

    assert foreign.status_code == 404
    assert runner.question is not None
    bids = {row.bid for row in runner.question.market.assignments}
    assert bids == {1_234_500, round_to_step(Micros(2_345_600))}
    assert 2_345_600 not in bids
    assert found["after"]["price"]["mean"] != pytest.approx(2.3556, abs=0.01)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"bidAmount": 0}, "bidAmount"),
        ({"bidAmount": None}, "bidAmount"),
        ({"bid": 3}, "bid"),
        ({"targetCpa": 0}, "targetCpa"),
        ({"startsAt": "2026-12-02T00:00:00Z", "endsAt": "2026-12-01T00:00:00Z"}, "endsAt"),
        ({"targeting": [{"ruleType": "planet", "operator": "in", "value": ["Mars"]}]}, "ruleType"),
    ],
    ids=["free", "null", "unknown", "target", "dates", "rule"],
)
async def test_a_change_that_makes_no_sense_names_its_field(changes: Json, field: str, admin: Client) -> None:
    campaign = await admin.make_campaign(bidAmount=2)

    found = await admin.post(f"/admin/campaigns/{campaign['id']}/what-if", json=changes)

    assert found.status_code == 400
    assert field in [one["field"] for one in found.json()["errors"]]


async def test_a_process_simulates_and_others_wait(admin: Client, control: ControlPlane, pool: Pool) -> None:
    placement = await admin.make_placement(delivery="auction", floorCpm=0.5)
    ad = await make_ad(admin, admin, placement, bidAmount=1, budgetDailyPaisa=100)
    await count(pool, placement, ad, by_day=3)
    control.app.state.what_if = WhatIfRunner(seconds_max=60)

    found = await ask(admin, ad[0], bidAmount=2)
    control.app.state.what_if = WhatIfRunner(at_once_max=0)
    busy = await admin.post(f"/admin/campaigns/{ad[0]['id']}/what-if", json={"bidAmount": 2})

    assert found["runs"] >= 3
    assert busy.status_code == 429
    assert int(busy.headers["retry-after"]) > 0


async def test_a_process_that_takes_too_long_is_killed() -> None:
    market = a_market(a_campaign())
    question = WhatIfQuestion(market=market, changed=market, campaign_key=1, seconds=60.0)
    began = time.monotonic()

    with pytest.raises(UnavailableError, match="too long"):
        await WhatIfRunner(seconds_max=0.05).run(question, None)

    assert time.monotonic() - began < 60


async def test_an_account_leaves_a_place_to_others() -> None:
    account_id, market = uuid4(), a_market(a_campaign())
    question = WhatIfQuestion(market=market, changed=market, campaign_key=1, seconds=60.0)
    runner = WhatIfRunner()

    running = asyncio.create_task(runner.run(question, account_id))
    await asyncio.sleep(0)
    with pytest.raises(RateLimitedError):
        runner.check_free(account_id)
    runner.check_free(uuid4())
    runner.check_free(None)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    runner.check_free(account_id)


def test_as_much_is_simulated_as_there_is_time_for() -> None:
    assert choose_share(5.0, 0.1) == 1
    assert choose_share(5.0, 1.0) == 1 / 4
    assert 0 < choose_share(-1.0, 1.0) < 1e-5
    # Six pairs of a second each are too many, three are not; still fewer requests would save little.
    assert choose_share(5.0, 0.1, fixed=0.5) == 1
    assert choose_share(5.0, 4.0, fixed=0.5) == 1 / 16


def test_budgets_are_not_thinned_out_to_dust() -> None:
    """A bid of 2.00 is 0.002 an impression, so 50 of them are a fifth of a budget of 0.50."""
    market = a_market(a_campaign(bid=2.0, daily_budget=0.5))
    question = WhatIfQuestion(market=market, changed=market, campaign_key=1, seconds=60.0)
    free = a_market(a_campaign(bid=2.0))

    least = find_least_share(question)

    assert least == pytest.approx(0.2)
    assert find_least_share(msgspec.structs.replace(question, market=free, changed=free)) == 0
    # Three pairs of runs in place of six: each may have twice as many requests.
    assert (choose_share(5.0, 3.0), choose_share(5.0, 3.0, least=least)) == (1 / 8, 1 / 4)
    # Where that does not suffice, fewer days, each with more of its requests.
    assert choose_part(5.0, Speed(0.0, 3.0), least) == (1 / 4, 7)
    assert choose_part(5.0, Speed(0.0, 6.0), least) == (1 / 4, 3)
    assert choose_part(5.0, Speed(0.0, 60.0), least)[1] == 1
    assert choose_part(5.0, Speed(0.0, 60.0), 0.0)[1] == 7


def test_what_is_thinned_out_to_dust_is_said_and_not_believed() -> None:
    market = a_market(a_campaign(bid=2.0, daily_budget=0.5))
    question = WhatIfQuestion(market=market, changed=market, campaign_key=1, seconds=8.0)
    # The second of three runs that try the machine out takes 100 seconds.
    clock = chain([0.0, 0.0, 0.0, 0.0], repeat(100.0))

    result = answer(question, _simulate, lambda: next(clock))

    assert (result.days, result.is_dust) == (1, True)
    assert result.notes == (TOO_FEW_OFFERS,)


def test_rivals_bids_are_a_third_apart_and_ones_own_is_exact() -> None:
    steps = {round_to_step(Micros(bid)) for bid in range(1_000_000, 10_000_000, 1_000)}
    market = a_market(a_campaign(bid=1.2345))

    assert len(steps) == STEPS_A_DECADE + 1
    assert round_to_step(Micros(1)) == 1
    assert blur_rivals(market, uuid4()).assignments[0].bid == round_to_step(Micros(1_234_500))
    assert blur_rivals(market, None) == market


async def test_the_command_simulates_an_installation_that_runs(
    admin: Client, pool: Pool, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = await admin.make_placement(delivery="auction", floorCpm=0.5)
    ad = await make_ad(admin, admin, placement, bidAmount=2, budgetDailyPaisa=500, name="Alive")
    monkeypatch.setenv("DATABASE_URL", database_url)
    arguments = ["--live", "--runs", "2", "--what-if", "campaign Alive: bid +20 %"]
    early = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    await count(pool, placement, ad, until=hour)

    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)

    assert (early.exit_code, result.exit_code) == (1, 0), result.output
    assert "There is not enough traffic yet" in str(early.exception) + early.output
    for text in ("Alive", "before", "after", "change", "seed 1"):
        assert text in result.output, text


async def test_the_whole_installation_becomes_a_market(admin: Client, pool: Pool) -> None:
    placement = await admin.make_placement(delivery="auction", floorCpm=0.5, auctionScoring="learned")
    campaign, banner = await make_ad(admin, admin, placement, bidAmount=2, name="Whole")
    await admin.make_rule(campaign, ruleType="new_visitor", operator="is", value=True)
    await count(pool, placement, (campaign, banner))
    learned = b"what was learned"
    await pool.execute(FIRST_STATE, LEARNING, learned, NOON, "[]")

    async with pool.acquire() as connection:
        market = build_live_market(await read_installation(connection, now=NOON))

    assert "Whole" in [one.name for one in market.campaigns]
    assert market.requests_a_week >= 7 * 208
    assert market.click_model == learned
    # Of another release: it begins anew.
    assert simulate(market).requests > 100
    assert any("new_visitor" in note for note in market.notes)
    assert market.starts_at.isoformat() == "2026-11-16T00:00:00+00:00"
