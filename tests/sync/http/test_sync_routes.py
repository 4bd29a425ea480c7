"""Manual syncs: the seed's test plan over HTTP, with a real queue and a real worker."""

from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest

from adloom.core.caller import Role
from adloom.runtime.jobs.worker import JobAttempt, PermanentJobError
from adloom.runtime.postgres import Pool
from adloom.sync.jobs import Origin, SyncJob
from adloom.sync.providers.mock import make_figures
from adloom.sync.queue import StatsQueue
from adloom.sync.words import Level
from tests.support.builders import UNKNOWN_ID
from tests.support.control import (
    Client,
    ControlPlane,
    control_settings,
    error_fields,
    problem,
    running_control,
)
from tests.support.for_each import for_each
from tests.sync.http.seller import API, DAY, Seller, a_seller, running_worker
from tests.sync.shop import DAY as THE_DAY

TODAY = "2026-11-15"


def ids_of(seller: Seller, first: str, last: str | None = None) -> list[str]:
    return [f"sync_{seller.id}_{first}_{last or first}_{level}" for level in ("CAMPAIGN", "ADSET", "AD")]


@pytest.mark.usefixtures("worker")
async def test_a_sync_brings_figures_to_every_level(seller: Seller) -> None:
    await seller.synced(date=DAY)

    [campaign] = (await seller.report("campaigns"))["rows"]
    figures = make_figures(seller.id, UUID(seller.id_of("campaigns")), THE_DAY, base_spend=2500.0)
    assert Decimal(str(campaign["spend"])) == figures.spend
    assert (campaign["impressions"], campaign["purchases"]) == (figures.impressions, figures.purchases)
    [adset], [ad] = [(await seller.report(what))["rows"] for what in ("adsets", "ads")]
    assert 0 < adset["spend"] != campaign["spend"] != ad["spend"] > 0
    [page] = (await seller.report("sellpages"))["rows"]
    assert (page["adSource"], page["adSpend"]) == ("META", campaign["spend"])
    assert page["revenue"] == page["purchaseValue"] == campaign["purchaseValue"]
    assert page["ordersCount"] == campaign["purchases"]


@pytest.mark.usefixtures("worker")
async def test_syncing_again_changes_nothing_and_is_enqueued_again(seller: Seller, pool: Pool) -> None:
    await seller.synced(date=DAY)
    before = await seller.report("campaigns")

    again = await seller.sync(date=DAY)
    await seller.wait_for(again["jobIds"])

    assert again["enqueued"] == 3
    assert await seller.report("campaigns") == before
    assert await pool.fetchval("SELECT count(*) FROM sync.ad_stats_raw WHERE entity_type = 'CAMPAIGN'") == 2


async def test_a_sync_names_its_three_jobs(seller: Seller) -> None:
    answer = await seller.sync(date=DAY)

    assert answer == {"enqueued": 3, "jobIds": ids_of(seller, DAY)}
    assert (await seller.jobs("waiting")).keys() == set(answer["jobIds"])


async def test_a_waiting_job_is_not_enqueued_twice(seller: Seller, stats_queue: StatsQueue) -> None:
    waiting = SyncJob(
        seller_id=seller.id, date_from=THE_DAY, date_to=THE_DAY, level=Level.AD, origin=Origin.SCHEDULE
    )
    await stats_queue.put([waiting])

    first, second = await seller.sync(date=DAY), await seller.sync(date=DAY)

    assert (first["enqueued"], second["enqueued"]) == (2, 0)
    assert first["jobIds"] == second["jobIds"] == ids_of(seller, DAY)
    assert len(await seller.jobs("waiting")) == 3


async def test_a_day_that_a_scheduled_job_has_in_hand_is_not_fetched_twice(
    seller: Seller, stats_queue: StatsQueue
) -> None:
    week = timedelta(days=7)
    scheduled = SyncJob(
        seller_id=seller.id, date_from=THE_DAY - week, date_to=THE_DAY, level=Level.AD, origin=Origin.SCHEDULE
    )
    other_days = SyncJob(
        seller_id=seller.id,
        date_from=THE_DAY - week,
        date_to=THE_DAY - timedelta(days=1),
        level=Level.ADSET,
        origin=Origin.SCHEDULE,
    )
    await stats_queue.put([scheduled, other_days])

    answer = await seller.sync(date=DAY)

    campaign, adset, _ = ids_of(seller, DAY)
    assert answer == {"enqueued": 2, "jobIds": [campaign, adset, scheduled.id]}
    assert len(await seller.jobs("waiting")) == 4


@pytest.mark.parametrize("content", ["{}", "", '{"date": null}'])
async def test_a_sync_without_a_date_is_for_today(content: str, seller: Seller) -> None:
    answer = await seller.client.post(
        f"{API}/sync", content=content, headers={"content-type": "application/json"}
    )

    assert answer.status_code == 202, answer.text
    assert answer.json()["jobIds"] == ids_of(seller, TODAY)


async def test_today_is_in_the_accounts_time_zone(control: ControlPlane) -> None:
    async with control.acting_as(Role.ADVERTISER, UUID(int=7)) as client:
        seller = await a_seller(client, UUID(int=7), timezone="Pacific/Kiritimati")

        alone = await seller.sync()
        await seller.make("accounts", timezone="UTC")
        both = await seller.sync()

    assert alone["jobIds"] == ids_of(seller, "2026-11-16")
    assert both["jobIds"] == ids_of(seller, TODAY, "2026-11-16")


@pytest.mark.usefixtures("worker")
async def test_a_range_is_a_backfill_with_progress(seller: Seller) -> None:
    answer = await seller.sync(dateFrom="2026-02-10", dateTo="2026-02-19")
    await seller.wait_for(answer["jobIds"])

    assert answer["jobIds"] == ids_of(seller, "2026-02-10", "2026-02-19")
    jobs = (await seller.jobs("completed")).values()
    assert {(job["progress"], job["origin"], job["error"]) for job in jobs} == {(1.0, "backfill", None)}
    ten, one = [
        (await seller.report("campaigns", dateFrom=first))["rows"][0]["spend"]
        for first in ("2026-02-10", DAY)
    ]
    assert ten > 8 * one


@for_each(
    ("body", "field"),
    [
        ({"date": "yesterday"}, "date"),
        ({"date": "2026-02-30"}, "date"),
        ({"date": "20260219"}, "date"),
        ({"date": 20260219}, "date"),
        ({"date": "2026-11-17"}, "date"),
        ({"date": "2019-01-01"}, "date"),
        ({"date": "9999-12-31"}, "date"),
        ({"dateFrom": "2026-02-19"}, "dateTo"),
        ({"dateTo": "2026-02-19"}, "dateFrom"),
        ({"dateFrom": "2026-02-19", "dateTo": "2026-02-18"}, "dateTo"),
        ({"dateFrom": "2025-01-01", "dateTo": "2026-02-19"}, "dateFrom"),
        ({"dateFrom": "2026-11-01", "dateTo": "2026-12-01"}, "dateTo"),
        ({"date": DAY, "dateFrom": DAY, "dateTo": DAY}, "date"),
        ({"level": "AD"}, "level"),
    ],
)
async def test_days_that_cannot_be_synced_are_refused(
    body: dict[str, object], field: str, seller: Seller
) -> None:
    answer = await seller.client.post(f"{API}/sync", json=body)

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {field}
    assert await seller.jobs("waiting") == {}


async def test_a_day_of_another_century_is_refused_for_that(seller: Seller) -> None:
    answer = await seller.client.post(f"{API}/sync", json={"date": "1999-12-31"})

    [error] = problem(answer, 400, "VALIDATION_FAILED")["errors"]
    assert error == {"field": "date", "message": "must be between the years 2000 and 2099"}


# --- jobs


async def test_jobs_are_listed_page_by_page_in_any_state(seller: Seller) -> None:
    await seller.sync(date=DAY)
    await seller.sync(date="2026-02-20")

    answer = await seller.client.get(
        f"{API}/jobs", params={"pageSize": "4", "page": "2", "sort": "createdAt"}
    )

    assert {name: value for name, value in answer.json().items() if name != "items"} == {
        "totalCount": 6,
        "page": 2,
        "pageSize": 4,
        "totalPages": 2,
    }
    job = answer.json()["items"][-1]
    assert job == {
        "id": job["id"],
        "sellerId": str(seller.id),
        "level": job["id"].rsplit("_", 1)[-1],
        "dateFrom": "2026-02-20",
        "dateTo": "2026-02-20",
        "origin": "manual",
        "state": "waiting",
        "attempts": 0,
        "progress": 0.0,
        "error": None,
        "createdAt": job["createdAt"],
        "endedAt": None,
    }
    assert (await seller.client.get(f"{API}/jobs/{job['id']}")).json() == job
    assert await seller.jobs("completed") == {}
    problem(await seller.client.get(f"{API}/jobs", params={"state": "lost"}), 400, "VALIDATION_FAILED")


async def test_a_failed_job_can_be_retried(seller: Seller, redis_url: str) -> None:
    job_id = await fail(seller, redis_url, "The platform does not answer.")
    failed = (await seller.jobs("failed"))[job_id]

    answer = await seller.client.post(f"{API}/jobs/{job_id}/retry")

    assert (failed["state"], failed["error"]) == ("failed", "The platform does not answer.")
    assert failed["endedAt"] is not None
    assert answer.status_code == 202, answer.text
    assert (answer.json()["state"], answer.json()["attempts"]) == ("waiting", 0)
    problem(await seller.client.post(f"{API}/jobs/{job_id}/retry"), 409, "SYNC_JOB_NOT_FAILED")


@for_each("job_id", ["nothing", f"sync_{UNKNOWN_ID}_{DAY}_{DAY}_AD", "%2e%2e", "sync_", "a%20b"])
async def test_an_unknown_job_cannot_be_retried(job_id: str, seller: Seller) -> None:
    problem(await seller.client.post(f"{API}/jobs/{job_id}/retry"), 404, "SYNC_JOB_NOT_FOUND")
    problem(
        await seller.client.post(f"{API}/jobs/{ids_of(seller, '2026-01-01')[0]}/retry"),
        404,
        "SYNC_JOB_NOT_FOUND",
    )


async def fail(seller: Seller, redis_url: str, reason: str) -> str:
    """Let the jobs of a sync fail permanently, and return the id of one."""

    async def handle(_job: JobAttempt) -> None:
        raise PermanentJobError(reason)

    job_ids = (await seller.sync(date=DAY))["jobIds"]
    async with running_worker(redis_url, handle):
        await seller.wait_for(job_ids, "failed")
    return job_ids[0]


# --- access


async def test_another_seller_sees_no_jobs(seller: Seller, other_client: Client, redis_url: str) -> None:
    job_id = await fail(seller, redis_url, "The platform does not answer.")

    for state in ("waiting", "active", "completed", "failed"):
        assert (await other_client.get(f"{API}/jobs", params={"state": state})).json()["items"] == []
    problem(await other_client.get(f"{API}/jobs/{job_id}"), 404, "SYNC_JOB_NOT_FOUND")
    problem(await other_client.post(f"{API}/jobs/{job_id}/retry"), 404, "SYNC_JOB_NOT_FOUND")

    assert job_id in await seller.jobs("failed")


async def test_a_seller_syncs_only_itself(seller: Seller, other_client: Client) -> None:
    for answer in (
        await other_client.post(f"{API}/sync", json={"date": DAY, "sellerId": str(seller.id)}),
        await other_client.post(f"{API}/sync", json={"date": DAY}, params={"sellerId": str(seller.id)}),
    ):
        problem(answer, 404, "SELLER_NOT_FOUND")

    assert await seller.jobs("waiting") == {}


async def test_an_admin_names_the_seller_to_sync(seller: Seller, admin: Client) -> None:
    named = {"sellerId": str(seller.id)}

    unnamed = await admin.post(f"{API}/sync", json={"date": DAY})
    unknown = await admin.post(f"{API}/sync", json={"sellerId": str(UNKNOWN_ID)})
    mistyped = await admin.get(f"{API}/jobs", params={"sellerId": "ann"})
    synced = await admin.post(f"{API}/sync", json={"date": DAY, **named})
    listed = await admin.get(f"{API}/jobs", params=named)

    assert error_fields(problem(unnamed, 400, "VALIDATION_FAILED")) == {"sellerId"}
    assert error_fields(problem(unknown, 400, "VALIDATION_FAILED")) == {"sellerId"}
    assert [one["field"] for one in problem(mistyped, 400, "VALIDATION_FAILED")["errors"]] == ["sellerId"]
    assert synced.json() == {"enqueued": 3, "jobIds": ids_of(seller, DAY)}
    assert listed.json()["totalCount"] == 3
    problem(await admin.get(f"{API}/jobs"), 400, "VALIDATION_FAILED")
    problem(await admin.post(f"{API}/jobs/{ids_of(seller, DAY)[0]}/retry"), 400, "VALIDATION_FAILED")


async def test_a_sync_without_a_queue_gets_503_and_the_hierarchy_stays_usable(database_url: str) -> None:
    async with (
        running_control(control_settings(database_url, "redis://127.0.0.1:1/0")) as control,
        control.acting_as(Role.ADVERTISER) as client,
    ):
        problem(await client.post(f"{API}/sync", json={}), 503, "UNAVAILABLE")
        problem(await client.get(f"{API}/jobs"), 503, "UNAVAILABLE")
        assert (await client.post(f"{API}/sellpages", json={"name": "x"})).status_code == 201
