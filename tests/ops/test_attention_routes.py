"""What needs attention, over HTTP."""

import asyncio
from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

from adloom.auction.calibration import CalibrationWindow, build_report
from adloom.bidding.decide import BELOW_MARKET
from adloom.bidding.window import BidDecision
from adloom.budgets.bid_model import BidProgress
from adloom.core.caller import Role
from adloom.core.money import micros_from_paisa
from adloom.events.ctr.store import LearningStore
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.runtime.jobs.worker import JobAttempt, JobWorker, PermanentJobError
from adloom.runtime.mail.send import QUEUE as MAIL_QUEUE
from adloom.runtime.mail.send import open_mail_queue
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from adloom.runtime.telemetry.heartbeat import FrozenProcess, Reading, record_frozen
from adloom.runtime.valkey import Valkey
from tests.stats.event_writer import EventWriter, clicked, seen
from tests.stats.test_spend_routes import a_busy_state, keep
from tests.support.builders import NOON, Json
from tests.support.control import Client, ControlPlane, control_settings, running_control
from tests.support.eventually import eventually
from tests.support.heartbeats import publish_heartbeat


async def found(client: Client, kind: str | None = None) -> list[Json]:
    answer = await client.get("/admin/attention")
    assert answer.status_code == 200, answer.text
    return [item for item in answer.json()["items"] if kind in {None, item["kind"]}]


async def everything_runs(valkey: Valkey) -> None:
    await publish_heartbeat(valkey, "worker", Reading())
    await publish_heartbeat(valkey, "delivery-1", Reading(index_version=10**6))


async def active(client: Client, **fields: object) -> Json:
    campaign = await client.make_campaign(**fields)
    answer = await client.patch(f"/admin/campaigns/{campaign['id']}/activate")
    assert answer.status_code == 200, answer.text
    return campaign


async def test_nothing_needs_attention_when_all_is_well(admin: Client, valkey: Valkey) -> None:
    await everything_runs(valkey)

    assert await found(admin) == []


async def test_missing_processes_are_reported(admin: Client) -> None:
    messages = [item["message"] for item in await found(admin, "processes")]

    assert len(messages) == 2
    assert "no delivery process runs" in messages[0]


async def test_a_valkey_that_does_not_answer_is_said_to_staff_and_keeps_nothing_else_back(
    database_url: str,
) -> None:
    settings = control_settings(database_url, f"redis://127.0.0.1:{find_port()}")
    async with running_control(settings) as plane:
        async with plane.acting_as(Role.ADMIN) as admin:
            await active(admin, name="Leaves", endsAt=(NOON + timedelta(days=2)).isoformat())
            items = await found(admin)
        async with plane.acting_as(Role.ADVERTISER) as advertiser:
            theirs = await found(advertiser)

    assert [(item["kind"], item["level"]) for item in items] == [("processes", "bad"), ("expiring", "info")]
    assert "Valkey: does not answer" in items[0]["message"]
    assert theirs == []


async def test_an_index_behind_the_catalog_is_reported(admin: Client, valkey: Valkey) -> None:
    await publish_heartbeat(valkey, "worker", Reading())
    await publish_heartbeat(valkey, "delivery-1", Reading(index_version=0))
    await admin.make_campaign()

    [item] = await found(admin, "processes")

    assert item["message"] == (
        "Index: delivery-1 serves version 0 of the catalog, which is at 1. "
        "Look again in a second; if it stays, see what delivery has logged."
    )


async def test_events_that_all_come_from_one_private_address_are_reported(
    admin: Client, valkey: Valkey
) -> None:
    await publish_heartbeat(valkey, "worker", Reading())
    await publish_heartbeat(valkey, "delivery-1", Reading(index_version=10**6, only_peer="10.0.0.1"))

    [item] = await found(admin, "processes")

    assert "all events of delivery-1 come from 10.0.0.1" in item["message"]


async def test_the_disk_with_the_least_room_is_reported(admin: Client, valkey: Valkey) -> None:
    await publish_heartbeat(valkey, "worker", Reading())
    for number, free_bytes in enumerate((80_000_000_000, 300_000_000, 2_000_000_000), 1):
        reading = Reading(index_version=10**6, disk_free_bytes=free_bytes)
        await publish_heartbeat(valkey, f"delivery-{number}", reading)

    [item] = await found(admin, "processes")

    assert item["level"] == "bad"
    assert item["message"].startswith("Disk: 0.3 GB free where delivery-2 keeps its files. Make room")


async def test_a_process_that_was_frozen_is_reported_for_a_day(admin: Client, valkey: Valkey) -> None:
    await everything_runs(valkey)
    for hours in (25, 1):
        await record_frozen(
            valkey,
            FrozenProcess(
                process="delivery-1",
                host="ads1",
                silent_seconds=5.0,
                at=NOON - timedelta(hours=hours),
            ),
        )

    [item] = await found(admin, "processes")

    assert item["message"] == (
        "Frozen: delivery-1 on ads1 gave no sign of life for 5 s"
        f" and was replaced at {NOON - timedelta(hours=1):%Y-%m-%d %H:%M:%S} UTC. "
        "Look for what stops processes there: a debugger, too little memory, a disk that hangs."
    )


async def test_dead_letters_are_reported(admin: Client, valkey: Valkey) -> None:
    await everything_runs(valkey)
    await DeadLetterQueue(valkey).add("event_tables", "1-0", b"x", reason="why", tries=5, again=b"x")

    [item] = await found(admin)

    assert (item["kind"], item["level"]) == ("ledger", "warn")


async def test_a_spent_budget_is_reported(admin: Client, pool: Pool, valkey: Valkey) -> None:
    await everything_runs(valkey)
    campaign = await active(admin, budgetDailyPaisa=12)
    await keep(pool, campaign, a_busy_state(charged=12, held=0, leased=0))

    [item] = await found(admin)

    assert (item["kind"], item["noun"], item["id"]) == ("exhausted", "campaign", campaign["id"])
    assert item["message"] == "has spent its budget of today."


async def test_a_budget_that_does_not_pay_for_one_more_click_is_reported(
    admin: Client, pool: Pool, valkey: Valkey
) -> None:
    await everything_runs(valkey)
    campaign = await active(admin, budgetTotalPaisa=220, bidType="cpc", bidAmount=0.5)
    await keep(pool, campaign, a_busy_state(charged=219, held=0, leased=0))

    [item] = await found(admin, "exhausted")

    assert item["message"] == "has 0.01 left of its total budget, which does not pay for one more click."


async def test_a_cap_that_is_reached_is_reported(admin: Client, pool: Pool, valkey: Valkey) -> None:
    await everything_runs(valkey)
    campaign = await active(admin, clickCap=1)
    await active(admin, clickCap=2)
    placement, banner = await admin.make_placement(), await admin.make_banner()
    await EventWriter(pool).write(clicked(banner, placement, campaign))

    [item] = await found(admin)

    assert (item["kind"], item["id"]) == ("exhausted", campaign["id"])
    assert item["message"] == "has had the one click that its cap allows, so it is not shown any more."


async def test_a_rule_about_countries_is_reported_where_no_country_is_known(
    admin: Client, pool: Pool, valkey: Valkey
) -> None:
    await publish_heartbeat(valkey, "worker", Reading())
    await publish_heartbeat(valkey, "delivery-1", Reading(index_version=10**6), geoip_file="")
    campaign = await active(admin)
    await admin.make_rule(campaign)
    other = await active(admin)
    await admin.make_rule(other, operator="not_in")

    items = await found(admin, "countries")
    placement, banner = await admin.make_placement(), await admin.make_banner()
    await EventWriter(pool).write(seen(banner, placement, country="DE"))
    with_events = await found(admin, "countries")
    await pool.execute("DELETE FROM events.event_counts")
    await publish_heartbeat(valkey, "delivery-1", Reading(index_version=10**6), geoip_file="countries.mmdb")
    with_file = await found(admin, "countries")
    assert (await admin.get("/admin/attention")).json()["knowsCountries"]
    await publish_heartbeat(valkey, "delivery-1", Reading(index_version=10**6), geoip_file="")
    assert not (await admin.get("/admin/attention")).json()["knowsCountries"]

    assert [item["id"] for item in items] == [campaign["id"]]
    assert "ADLOOM_GEOIP_FILE" in items[0]["message"]
    assert (with_events, with_file) == ([], [])


async def test_mail_that_failed_for_good_is_reported(admin: Client, valkey: Valkey, redis_url: str) -> None:
    await everything_runs(valkey)

    async def refuse(_: JobAttempt) -> None:
        raise PermanentJobError("550 no such mailbox")

    worker, stop = JobWorker(MAIL_QUEUE, redis_url, {"send": refuse}), asyncio.Event()
    async with open_mail_queue(redis_url) as queue, asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        await queue.put("send", job_id="letter")
        await eventually(lambda: worker.dead == 1, seconds=30)
        stop.set()

    [item] = await found(admin, "jobs")

    assert item["message"].startswith("E-mail: 1 e-mails could not be sent")


async def test_slugs_that_pages_ask_for_in_vain_are_reported(
    control: ControlPlane, admin: Client, valkey: Valkey
) -> None:
    await publish_heartbeat(valkey, "worker", Reading())
    reading = Reading(index_version=10**6, unknown_slugs={"heroo": "example.com"})
    await publish_heartbeat(valkey, "delivery-1", reading)

    [item] = await found(admin)
    async with control.acting_as(Role.PUBLISHER) as publisher:
        assert await found(publisher) == []

    assert item["kind"] == "unknownSlugs"
    assert "example.com asks for the placement 'heroo'" in item["message"]


async def test_a_worker_that_does_not_use_its_own_weights_is_reported(admin: Client, valkey: Valkey) -> None:
    await everything_runs(valkey)
    reading = Reading(weights_problem="/w/fleet.weights: weights: not those of their hash")
    await publish_heartbeat(valkey, "worker", reading)

    [item] = await found(admin)

    assert (item["kind"], item["level"]) == ("processes", "warn")
    assert item["message"].startswith(
        "Bid weights: worker uses the weights of the package,"
        " because of /w/fleet.weights: weights: not those of their hash. Let ADLOOM_FLEET_WEIGHTS name"
    )


async def test_books_that_disagree_are_reported_to_admins(
    control: ControlPlane, admin: Client, valkey: Valkey
) -> None:
    await everything_runs(valkey)
    await publish_heartbeat(valkey, "worker", Reading(books_problem="the books of 2026-11-15 do not agree"))

    [item] = await found(admin)
    async with control.acting_as(Role.PUBLISHER) as publisher:
        assert await found(publisher) == []

    assert (item["kind"], item["level"]) == ("processes", "bad")
    assert item["message"].startswith("Money: the books of 2026-11-15 do not agree. Run `adloom doctor")


async def test_an_under_delivering_campaign_is_reported_after_a_while(
    control: ControlPlane, admin: Client, pool: Pool
) -> None:
    campaign = await active(admin, budgetDailyPaisa=10_000)
    await keep(pool, campaign, a_busy_state(charged=12, held=0, leased=0))
    at_first = await found(admin, "underDelivering")
    control.clock.advance(timedelta(hours=2))

    async with control.acting_as(Role.ADMIN) as later:
        [item] = await found(later, "underDelivering")

    assert at_first == []
    assert item["id"] == campaign["id"]


async def test_a_campaign_says_why_it_spends_too_little_and_that_its_target_is_below_the_market(
    control: ControlPlane, admin: Client, pool: Pool
) -> None:
    campaign = await active(admin, budgetDailyPaisa=10_000, bidAmount=5)
    state = a_busy_state(charged=12, held=0, leased=0)
    bids = BidProgress(
        day=state.day,
        multiplier=0.3,
        decision=BidDecision(multiplier=0.3, reason="pacer", note=BELOW_MARKET),
    )
    await keep(pool, campaign, msgspec.structs.replace(state, bids=bids))
    control.clock.advance(timedelta(hours=2))

    async with control.acting_as(Role.ADMIN) as later:
        [slow] = await found(later, "underDelivering")
        [below] = await found(later, "targetBelowMarket")

    assert slow["message"].endswith("by now, because its strategy bids 30% of its bid.")
    assert below["message"].startswith("has a target below the market")


async def test_offers_that_hold_a_budget_and_are_never_confirmed_are_reported(
    admin: Client, pool: Pool
) -> None:
    hoarded, seen = (await active(admin, budgetDailyPaisa=100), await active(admin, budgetDailyPaisa=100))
    for campaign, charged in ((hoarded, 1), (seen, 20)):
        state = a_busy_state(charged=charged, held=0, leased=0)
        [number] = state.leases
        lease = msgspec.structs.replace(state.leases[number], expired=micros_from_paisa(60))
        lease = msgspec.structs.replace(
            lease, granted=lease.granted + lease.expired, given=lease.given + lease.expired
        )
        await keep(pool, campaign, msgspec.structs.replace(state, leases={number: lease}))

    [item] = await found(admin, "unconfirmed")

    assert (item["id"], item["level"]) == (hoarded["id"], "warn")
    assert "today they held 60 times what was charged" in item["message"]


async def test_campaigns_and_banners_that_end_within_three_days_are_reported(
    admin: Client, valkey: Valkey
) -> None:
    await everything_runs(valkey)
    soon, later = NOON + timedelta(days=2), NOON + timedelta(days=4)
    await active(admin, name="Soon", endsAt=soon.isoformat())
    await active(admin, name="Later", endsAt=later.isoformat())
    await admin.make_banner(title="Soon too", expiresAt=soon.isoformat())

    items = await found(admin)

    assert [(item["kind"], item["name"]) for item in items] == [
        ("expiring", "Soon"),
        ("expiring", "Soon too"),
    ]


async def test_what_belongs_to_a_deleted_account_needs_no_attention(admin: Client, valkey: Valkey) -> None:
    await everything_runs(valkey)
    advertiser = await admin.make_advertiser()
    soon = (NOON + timedelta(days=2)).isoformat()
    await active(admin, advertiserId=advertiser["id"], endsAt=soon)
    await admin.make_banner(advertiserId=advertiser["id"], expiresAt=soon)
    assert len(await found(admin)) == 2

    assert (await admin.delete(f"/admin/advertisers/{advertiser['id']}")).status_code == 204

    assert await found(admin) == []


async def test_an_account_sees_only_its_own_items(control: ControlPlane, admin: Client, pool: Pool) -> None:
    advertiser = await admin.make_advertiser()
    own = await active(admin, advertiserId=advertiser["id"], budgetDailyPaisa=12)
    await keep(pool, own, a_busy_state(charged=12, held=0, leased=0))
    async with (
        control.acting_as(Role.ADVERTISER, UUID(advertiser["id"])) as owner,
        control.acting_as(Role.ADVERTISER) as other,
        control.acting_as(Role.PUBLISHER) as publisher,
    ):
        assert [item["id"] for item in await found(owner)] == [own["id"]]
        assert await found(other) == []
        assert await found(publisher) == []


async def test_ten_items_are_shown_and_all_are_counted(admin: Client, valkey: Valkey) -> None:
    await everything_runs(valkey)
    for number in range(12):
        await admin.make_banner(title=f"Banner {number}", expiresAt=(NOON + timedelta(days=1)).isoformat())
    for number in range(3):
        await active(admin, name=f"Campaign {number}", endsAt=(NOON + timedelta(days=1)).isoformat())

    answer = (await admin.get("/admin/attention")).json()

    assert len(answer["items"]) == 10
    assert answer["counts"] == {"expiring": 13}


async def test_predictions_that_are_far_off_are_reported_with_their_deciles(
    control: ControlPlane, admin: Client, pool: Pool, valkey: Valkey
) -> None:
    await everything_runs(valkey)
    window = CalibrationWindow()
    for number in range(2_000):
        window.add(0.2, is_clicked=number % 10 == 0)
    reports = [build_report("heuristic", window), build_report("learned", CalibrationWindow())]
    await LearningStore(pool).save_state(b"state", [], version=0, now=NOON, calibrations=reports)

    [item] = await found(admin)
    answer = await admin.get("/admin/stats/calibration")
    async with control.acting_as(Role.ADVERTISER) as advertiser:
        refused = await advertiser.get("/admin/stats/calibration")

    heuristic, learned = answer.json()["items"]
    assert (item["kind"], item["level"]) == ("calibration", "warn")
    assert "predicted 2.0" in item["message"]
    assert heuristic["ratio"] == pytest.approx(2.0, abs=0.05)
    assert [round(one["ctr"], 2) for one in heuristic["deciles"]] == [0.1]
    assert (learned["ratio"], learned["isFarOff"], learned["deciles"]) == (None, False, [])
    assert refused.status_code == 403


async def test_a_site_whose_pages_are_all_out_of_date_is_named_to_who_has_it(
    admin: Client, control: ControlPlane, pool: Pool
) -> None:
    owner, other = await admin.make_publisher(), await admin.make_publisher()
    site = await admin.make_site(publisherId=owner["id"], cronSchedule=None)
    await admin.make_placement(siteId=site["id"], publisherId=owner["id"], delivery="contextual")
    for path in "ab":
        page = {"url": f"https://{site['domain']}/{path}", "categories": [{"id": "483", "confidence": 1}]}
        assert (await admin.post(f"/admin/sites/{site['id']}/pages", json=page)).status_code == 200
    expire = "UPDATE site_pages SET expires_at = classified_at WHERE url LIKE $1"
    await pool.execute(expire, "%/a")
    assert await found(admin, "stalePages") == []

    await pool.execute(expire, "%")

    seen_by = {"admin": await found(admin, "stalePages")}
    for name, account in (("owner", owner), ("other", other)):
        async with control.acting_as(Role.PUBLISHER, UUID(account["id"])) as client:
            seen_by[name] = await found(client, "stalePages")
    assert {name: [one["id"] for one in items] for name, items in seen_by.items()} == {
        "admin": [site["id"]],
        "owner": [site["id"]],
        "other": [],
    }
