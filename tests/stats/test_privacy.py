"""`/admin/privacy/users/{userId}`: an admin exports and erases what is kept about a user."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from adloom.core.caller import Role
from adloom.core.ids import digest_user
from adloom.events.log.event import Mark
from adloom.events.rebuild.log_scanner import LogScanner
from adloom.events.rebuild.rebuild import EventTablesRebuild
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from adloom.stats.privacy.store import EVENTS_A_PAGE
from tests.events.catalog import cap_banners
from tests.stats.log_worker import LogWorker
from tests.support.builders import NOON
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.event_rows import EventRows, noon

USER = UUID("01890000-0000-7000-8000-00000000abcd")
OTHER_USER = UUID("01890000-0000-7000-8000-00000000dcba")
PATH = f"/admin/privacy/users/{USER}"
PERSONAL = {
    "user_id": USER,
    "session_id": "the-session",
    "page_url": "https://pub.example/about?me=1",
}
Json = dict[str, Any]

INSERT_CONVERSION = """
    INSERT INTO events.conversions (
        campaign_id, name, banner_id, placement_id, request_id, slot, offered_at, occurred_at, received_at,
        value_micros, currency, is_counted, entry_ms, entry_seq
    )
    SELECT campaigns.id, '\\x00ff'::bytea, banners.id, placements.id, $1, 1, $2, $2, $2, 9990000, 'EUR', true, 1, 1
      FROM campaigns, banners, placements
"""


@pytest.fixture
async def rows(admin: Client, pool: Pool) -> EventRows:
    return EventRows(
        pool, await admin.make_banner(), await admin.make_placement(), await admin.make_campaign()
    )


async def kept(client: Client, user_id: UUID = USER, **params: Any) -> Json:
    answer = await client.get(f"/admin/privacy/users/{user_id}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def erased(client: Client, user_id: UUID = USER) -> Json:
    answer = await client.delete(f"/admin/privacy/users/{user_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def whole_tables(pool: Pool) -> list[str]:
    """All rows of the event tables and of the audit trail, as text."""
    tables = ("events.banner_impressions", "events.banner_clicks", "audit_entries")
    return [str(dict(row)) for table in tables for row in await pool.fetch(f"SELECT * FROM {table}")]  # noqa: S608 - our own names


async def test_nothing_is_kept_about_an_unknown_user(admin: Client) -> None:
    assert await kept(admin) == {
        "userId": str(USER),
        "exportedAt": "2026-11-15T12:00:00Z",
        "keptSince": None,
        "erasedAt": None,
        "frequency": [],
        "items": [],
        "totalCount": 0,
        "auctions": [],
        "auctionCount": 0,
        "page": 1,
        "pageSize": EVENTS_A_PAGE,
        "totalPages": 0,
    }


async def test_the_export_of_a_user_has_everything_kept_oldest_first(
    admin: Client, pool: Pool, rows: EventRows
) -> None:
    request_id = uuid4()
    click = await rows.click(
        Mark.ADDRESS_FLOOD,
        **PERSONAL,
        destination_url="https://shop.example/",
        request_id=request_id,
        slot=2,
        client_network="203.0.113.0/24",
        device_type="mobile",
        country_code="DE",
        occurred_at=noon(seconds=3),
    )
    impression = await rows.impression(
        **PERSONAL, referrer_url="https://search.example/?q=tea", occurred_at=noon(days=-20)
    )
    await rows.impression(user_id=OTHER_USER)
    await rows.impression()

    answer = await kept(admin)

    place = await pool.fetchrow(
        """
        SELECT banners.public_id AS banner, placements.public_id AS placement, campaigns.public_id AS campaign
          FROM banners, placements, campaigns
        """
    )
    assert place is not None
    common = {
        "bannerId": str(place["banner"]),
        "placementId": str(place["placement"]),
        "campaignId": str(place["campaign"]),
        "sessionId": "the-session",
        "pageUrl": "https://pub.example/about?me=1",
    }
    assert (answer["totalCount"], answer["keptSince"]) == (2, "2026-10-26")
    assert answer["items"] == [
        {
            **common,
            "kind": "impression",
            "correlationId": impression,
            "deviceType": None,
            "countryCode": None,
            "referrerUrl": "https://search.example/?q=tea",
            "destinationUrl": None,
            "occurredAt": "2026-10-26T12:00:00Z",
            "receivedAt": "2026-10-26T12:00:00Z",
            "requestId": None,
            "slot": None,
            "clientNetwork": None,
            "value": None,
            "currency": None,
            "marks": [],
        },
        {
            **common,
            "kind": "click",
            "correlationId": click,
            "deviceType": "mobile",
            "countryCode": "DE",
            "referrerUrl": None,
            "destinationUrl": "https://shop.example/",
            "occurredAt": "2026-11-15T12:00:03Z",
            "receivedAt": "2026-11-15T12:00:03Z",
            "requestId": str(request_id),
            "slot": 2,
            "clientNetwork": "203.0.113.0/24",
            "value": None,
            "currency": None,
            "marks": ["address_flood"],
        },
    ]


async def test_conversions_of_a_users_clicks_are_exported_and_lose_the_user_with_them(
    admin: Client, pool: Pool, rows: EventRows
) -> None:
    offer = {"request_id": uuid4(), "slot": 1}
    await rows.click(**PERSONAL, **offer)
    await rows.click(Mark.SECOND_CLICK, **PERSONAL, **offer)
    await rows.click(user_id=OTHER_USER, request_id=uuid4(), slot=1)
    await pool.execute(INSERT_CONVERSION, offer["request_id"], noon(seconds=9))

    found = [item for item in (await kept(admin))["items"] if item["kind"] == "conversion"]
    others = await kept(admin, OTHER_USER)
    gone = await erased(admin)

    assert [(one["correlationId"], one["value"], one["currency"], one["marks"]) for one in found] == [
        ("00ff", 9.99, "EUR", [])
    ]
    assert (found[0]["requestId"], found[0]["slot"]) == (str(offer["request_id"]), 1)
    assert [item["kind"] for item in others["items"]] == ["click"]
    assert (gone["clicks"], gone["conversions"]) == (2, 1)
    assert (await kept(admin))["items"] == []
    assert (await erased(admin))["conversions"] == 0
    assert await pool.fetchval("SELECT count(*) FROM events.conversions") == 1


async def test_a_long_export_is_split_into_pages(admin: Client, pool: Pool, rows: EventRows) -> None:
    await rows.impression(**PERSONAL)
    await pool.execute(
        """
        INSERT INTO events.banner_impressions (
            correlation_id, banner_id, placement_id, user_id, occurred_at, received_at, entry_ms, entry_seq
        )
        SELECT 'more-' || number, banner_id, placement_id, user_id, occurred_at, received_at, 1, number
          FROM events.banner_impressions, generate_series(1, $1) AS number
        """,
        EVENTS_A_PAGE,
    )

    pages = [await kept(admin, page=number) for number in (1, 2, 3)]

    assert [len(page["items"]) for page in pages] == [EVENTS_A_PAGE, 1, 0]
    assert {(page["totalCount"], page["totalPages"]) for page in pages} == {(EVENTS_A_PAGE + 1, 2)}
    names = {item["correlationId"] for page in pages for item in page["items"]}
    assert len(names) == EVENTS_A_PAGE + 1


async def test_an_erased_user_is_in_no_row_and_the_events_stay_counted(
    admin: Client, pool: Pool, rows: EventRows
) -> None:
    for days in (0, -1, -40):
        await rows.impression(
            **PERSONAL, referrer_url="https://search.example/?q=tea", occurred_at=noon(days=days)
        )
    await rows.click(**PERSONAL, destination_url="https://shop.example/")
    other = {"user_id": OTHER_USER, "session_id": "theirs", "page_url": "https://pub.example/other"}
    await rows.impression(**other)

    assert await erased(admin) == {
        "erasedAt": "2026-11-15T12:00:00Z",
        "impressions": 3,
        "clicks": 1,
        "conversions": 0,
        "auctions": 0,
    }

    answer = await kept(admin)
    assert (answer["totalCount"], answer["erasedAt"]) == (0, "2026-11-15T12:00:00Z")
    assert await pool.fetchval("SELECT count(*) FROM events.banner_impressions") == 4
    left = "\n".join(await whole_tables(pool))
    assert not any(word in left for word in (str(USER), "the-session", "me=1", "q=tea"))
    [untouched] = (await kept(admin, OTHER_USER))["items"]
    assert (untouched["sessionId"], untouched["pageUrl"]) == ("theirs", "https://pub.example/other")


async def test_erasing_again_removes_only_events_that_came_since(
    control: ControlPlane, admin: Client, pool: Pool, rows: EventRows
) -> None:
    await rows.impression(**PERSONAL)

    first = await erased(admin)
    control.clock.advance(timedelta(minutes=1))
    second = await erased(admin)
    await rows.click(**PERSONAL)
    third = await erased(admin)

    assert [(one["impressions"], one["clicks"]) for one in (first, second, third)] == [(1, 0), (0, 0), (0, 1)]
    assert first["erasedAt"] < second["erasedAt"] == third["erasedAt"]
    assert await pool.fetchval("SELECT count(*) FROM erased_users") == 1


async def test_an_erasure_keeps_its_later_time_when_the_clock_goes_back(admin: Client, pool: Pool) -> None:
    await pool.execute(
        "INSERT INTO erased_users (user_digest, erased_at) VALUES ($1, $2)", digest_user(USER), noon(hours=1)
    )

    assert (await erased(admin))["erasedAt"] == "2026-11-15T13:00:00Z"


async def test_an_erasure_is_in_the_audit_trail_under_a_digest(
    control: ControlPlane, admin: Client, rows: EventRows
) -> None:
    await rows.impression(**PERSONAL)

    await erased(admin)

    [entry] = (await admin.get("/admin/audit", params={"noun": "reader"})).json()["items"]
    assert (entry["action"], entry["nounId"], entry["ownerId"]) == ("erase", digest_user(USER).hex(), None)
    assert entry["changes"] == {
        "impressions": {"from": 1, "to": 0},
        "clicks": {"from": 0, "to": 0},
        "conversions": {"from": 0, "to": 0},
        "auctions": {"from": 0, "to": 0},
    }
    assert entry["at"] == NOON.isoformat().replace("+00:00", "Z")
    async with control.acting_as(Role.ADVERTISER) as account:
        assert (await account.get("/admin/audit", params={"noun": "reader"})).json()["items"] == []


async def test_an_erasure_waits_for_the_batch_that_is_being_applied(admin: Client, pool: Pool) -> None:
    await erased(admin)
    async with pool.acquire() as worker:
        batch = worker.transaction()
        await batch.start()
        await worker.execute("SELECT FROM projection_cursors WHERE projection = 'event_tables' FOR UPDATE")
        erasing = asyncio.create_task(erased(admin))
        await asyncio.sleep(0.1)
        assert not erasing.done()
        await worker.execute("SELECT ensure_event_day('events', $1)", NOON.date())
        await worker.execute(
            """
            INSERT INTO events.banner_impressions (
                correlation_id, banner_id, placement_id, user_id, occurred_at, received_at, entry_ms, entry_seq
            ) VALUES ('of the batch', 1, 1, $1, $2, $2, 1, 0)
            """,
            USER,
            NOON,
        )
        await batch.commit()

    assert (await erasing)["impressions"] == 1


# --- with the real log and projections


@pytest.fixture
async def worker(admin: Client, pool: Pool, valkey: Valkey) -> LogWorker:
    return LogWorker(pool, valkey, await admin.make_banner(), await admin.make_placement())


async def users_by_name(pool: Pool) -> dict[str, tuple[Any, ...]]:
    rows = await pool.fetch(
        "SELECT correlation_id, user_id, session_id, page_url FROM events.banner_impressions"
    )
    return {name: tuple(person) for name, *person in rows}


async def test_events_in_the_log_at_the_erasure_are_applied_without_the_user(
    admin: Client, pool: Pool, worker: LogWorker
) -> None:
    await worker.append("applied before", **PERSONAL)
    await worker.catch_up()
    await worker.append("in the log", "and another", **PERSONAL, referrer_url="https://r.example/?q=tea")

    assert (await erased(admin))["impressions"] == 1
    await worker.append("from a spool", **PERSONAL)
    await worker.catch_up()

    assert set((await users_by_name(pool)).values()) == {(None, None, None)}
    assert len(await users_by_name(pool)) == 4
    assert not any("q=tea" in row for row in await whole_tables(pool))
    assert (await kept(admin))["totalCount"] == 0


async def test_events_of_an_erased_user_who_returns_are_kept_again(
    control: ControlPlane, admin: Client, pool: Pool, worker: LogWorker
) -> None:
    await worker.append("before", **PERSONAL)
    await erased(admin)
    control.clock.advance(timedelta(minutes=1))
    await worker.append("after", **PERSONAL, received_at=noon(seconds=1))

    await worker.catch_up()

    assert await users_by_name(pool) == {"before": (None, None, None), "after": tuple(PERSONAL.values())}
    answer = await kept(admin)
    assert [item["correlationId"] for item in answer["items"]] == ["after"]
    assert answer["erasedAt"] == "2026-11-15T12:00:00Z"


async def test_the_export_has_frequency_counts_and_an_erasure_removes_them(
    control: ControlPlane, pool: Pool, worker: LogWorker
) -> None:
    # Valkey expires a window by its own clock.
    now = max(datetime.now(UTC), NOON)
    control.clock.advance(now - control.clock.now())
    await cap_banners(pool)
    await worker.append("one", "two", **PERSONAL, occurred_at=now, received_at=now)
    await worker.append("other", user_id=OTHER_USER, occurred_at=now, received_at=now)
    await worker.catch_up()

    async with control.acting_as(Role.ADMIN) as admin:
        shown = (await kept(admin))["frequency"]
        await erased(admin)

        assert [(one["window"], one["impressions"]) for one in shown] == [
            (window, 2) for window in ("hour", "day", "week", "month", "lifetime")
        ]
        of_another = await kept(admin, OTHER_USER)
        assert {one["bannerId"] for one in shown} == {of_another["items"][0]["bannerId"]}
        assert (await kept(admin))["frequency"] == []
        assert len(of_another["frequency"]) == 5


async def test_a_replay_does_not_restore_an_erased_user(
    admin: Client, pool: Pool, valkey: Valkey, worker: LogWorker
) -> None:
    await worker.append("one", **PERSONAL)
    await worker.catch_up()
    await erased(admin)

    await EventTablesRebuild(pool, LogScanner(valkey)).run()

    assert await users_by_name(pool) == {"one": (None, None, None)}


@pytest.mark.parametrize("params", [{"page": "0"}, {"page": "one"}, {"pageSize": "100"}])
async def test_only_the_page_parameter_is_accepted(admin: Client, params: dict[str, str]) -> None:
    body = problem(await admin.get(PATH, params=params), 400, "VALIDATION_FAILED")

    assert error_fields(body) == set(params)
