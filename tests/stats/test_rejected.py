"""`GET /admin/events/rejected`: events that count but are not billed, and why, per account."""

from typing import Any
from uuid import uuid4

import pytest

from adloom.core.caller import Role
from adloom.events.log.event import UNBILLED_MARKS, Mark
from adloom.runtime.postgres import Pool
from adloom.stats.rejected.store import strip_address
from tests.support.builders import NOON
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.event_rows import EventRows, noon
from tests.support.for_each import for_each

PATH = "/admin/events/rejected"
Json = dict[str, Any]


@pytest.fixture
async def rows(admin: Client, pool: Pool) -> EventRows:
    return EventRows(
        pool, await admin.make_banner(), await admin.make_placement(), await admin.make_campaign()
    )


async def rejected(client: Client, **params: Any) -> Json:
    answer = await client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def found(client: Client, **params: Any) -> list[str]:
    return [item["correlationId"] for item in (await rejected(client, **params))["items"]]


async def test_all_reasons_are_listed_with_zero_without_events(admin: Client) -> None:
    assert await rejected(admin) == {
        "items": [],
        "totalCount": 0,
        "page": 1,
        "pageSize": 20,
        "totalPages": 0,
        "reasons": [{"reason": reason.value, "impressions": 0, "clicks": 0} for reason in UNBILLED_MARKS],
    }


async def test_an_event_is_shown_with_its_reasons_and_without_its_user(
    admin: Client, pool: Pool, rows: EventRows
) -> None:
    request_id = uuid4()
    correlation_id = await rows.impression(
        Mark.OCCURRED_AT_REPLACED,
        Mark.DATA_CENTER,
        Mark.SECOND_IMPRESSION,
        request_id=request_id,
        slot=1,
        user_id=uuid4(),
        session_id="the-session",
        device_type="mobile",
        country_code="DE",
        page_url="https://mallory:secret@pub.example/news?mail=a@b.example#top",
        referrer_url="https://other.example/?q=the-search",
        client_network="203.0.113.0/24",
        received_at=noon(seconds=2),
    )

    answer = await rejected(admin)

    place = await pool.fetchrow(
        """
        SELECT banners.public_id AS banner, placements.public_id AS placement, campaigns.public_id AS campaign
          FROM banners, placements, campaigns
        """
    )
    assert place is not None
    assert answer["items"] == [
        {
            "kind": "impression",
            "correlationId": correlation_id,
            "bannerId": str(place["banner"]),
            "placementId": str(place["placement"]),
            "campaignId": str(place["campaign"]),
            "reasons": ["data_center", "second_impression"],
            "marks": ["occurred_at_replaced", "data_center", "second_impression"],
            "occurredAt": "2026-11-15T12:00:00Z",
            "receivedAt": "2026-11-15T12:00:02Z",
            "requestId": str(request_id),
            "deviceType": "mobile",
            "countryCode": "DE",
            "pageUrl": "https://pub.example/news",
            "clientNetwork": "203.0.113.0/24",
        }
    ]
    assert {one["reason"]: one["impressions"] for one in answer["reasons"] if one["impressions"]} == {
        "data_center": 1,
        "second_impression": 1,
    }


async def test_valid_events_are_not_shown(admin: Client, rows: EventRows) -> None:
    await rows.impression()
    await rows.click(Mark.OCCURRED_AT_REPLACED)

    assert (await rejected(admin))["totalCount"] == 0


async def test_reasons_are_counted_over_all_pages_by_kind(admin: Client, rows: EventRows) -> None:
    for _ in range(3):
        await rows.impression(Mark.CRAWLER)
    await rows.impression(Mark.CRAWLER, Mark.PREFETCH)
    await rows.click(Mark.CRAWLER, Mark.CLICK_WITHOUT_IMPRESSION)

    answer = await rejected(admin, pageSize=2, page=3)

    assert (answer["totalCount"], answer["totalPages"], len(answer["items"])) == (5, 3, 1)
    counts = {one["reason"]: (one["impressions"], one["clicks"]) for one in answer["reasons"]}
    assert list(counts) == [reason.value for reason in UNBILLED_MARKS]
    assert {reason: pair for reason, pair in counts.items() if pair != (0, 0)} == {
        "crawler": (4, 1),
        "prefetch": (1, 0),
        "click_without_impression": (0, 1),
    }


async def test_filters_apply_to_events_and_to_reasons(admin: Client, pool: Pool, rows: EventRows) -> None:
    banner, placement = await admin.make_banner(), await admin.make_placement()
    elsewhere = EventRows(pool, banner, placement)
    crawled, clicked = await rows.impression(Mark.CRAWLER), await rows.click(Mark.CRAWLER)
    other = await elsewhere.impression(Mark.PREFETCH)

    assert await found(admin, kind="click") == [clicked]
    assert await found(admin, reason="prefetch") == [other]
    assert await found(admin, bannerId=banner["id"]) == [other]
    assert await found(admin, placementId=placement["id"]) == [other]
    assert await found(admin, bannerId=str(uuid4())) == []
    campaign_id = (await rejected(admin, reason="crawler"))["items"][0]["campaignId"]
    assert set(await found(admin, campaignId=campaign_id)) == {crawled, clicked}
    narrowed = await rejected(admin, reason="crawler", kind="impression")
    assert [one for one in narrowed["reasons"] if one["impressions"] or one["clicks"]] == [
        {"reason": "crawler", "impressions": 1, "clicks": 0}
    ]


async def test_days_are_utc_inclusive_and_default_to_today(admin: Client, rows: EventRows) -> None:
    midnight = NOON.replace(hour=0)
    before = await rows.impression(Mark.CRAWLER, occurred_at=midnight.replace(day=14, hour=23, minute=59))
    first = await rows.impression(Mark.CRAWLER, occurred_at=midnight)
    last = await rows.click(Mark.CRAWLER, occurred_at=midnight.replace(hour=23, minute=59, second=59))
    after = await rows.impression(Mark.CRAWLER, occurred_at=midnight.replace(day=16))

    assert await found(admin) == [last, first]
    assert await found(admin, to="2026-11-14") == [before]
    assert await found(admin, **{"from": "2026-11-14"}) == [last, first, before]
    assert await found(admin, **{"from": "2026-11-14", "to": "2026-11-16", "sort": "occurredAt"}) == [
        before,
        first,
        last,
        after,
    ]


async def test_events_can_be_sorted_by_their_arrival(admin: Client, rows: EventRows) -> None:
    late = await rows.impression(Mark.CRAWLER, occurred_at=noon(hours=-1), received_at=noon(hours=1))
    soon = await rows.click(Mark.CRAWLER)

    assert await found(admin) == [soon, late]
    assert await found(admin, sort="-receivedAt") == [late, soon]


async def test_an_account_sees_only_its_own_rejected_events_and_no_network(
    control: ControlPlane, admin: Client, advertiser: Client, publisher: Client, pool: Pool
) -> None:
    banner, campaign = await advertiser.make_banner(), await advertiser.make_campaign()
    placement = await publisher.make_placement()
    foreign_banner, foreign_campaign = await admin.make_banner(), await admin.make_campaign()
    foreign_placement = await admin.make_placement()
    network = {"client_network": "2001:db8:7::/48"}
    both = await EventRows(pool, banner, placement, campaign).impression(Mark.ADDRESS_FLOOD, **network)
    bare = await EventRows(pool, banner, foreign_placement).click(Mark.CRAWLER)
    shown = await EventRows(pool, foreign_banner, placement, foreign_campaign).impression(Mark.CRAWLER)
    borrowed = await EventRows(pool, banner, foreign_placement, foreign_campaign).impression(Mark.CRAWLER)

    assert set(await found(admin)) == {both, bare, shown, borrowed}
    assert set(await found(advertiser)) == {both, bare}
    assert set(await found(publisher)) == {both, shown}
    assert await found(advertiser, bannerId=foreign_banner["id"]) == []
    assert await found(publisher, placementId=foreign_placement["id"]) == []
    for client in (advertiser, publisher):
        answer = await rejected(client)
        assert {item["clientNetwork"] for item in answer["items"]} == {None}
        assert sum(one["impressions"] + one["clicks"] for one in answer["reasons"]) == 2
    async with control.acting_as(Role.VIEWER) as viewer, control.acting_as(Role.ADVERTISER) as other_account:
        [item] = (await rejected(viewer, reason="address_flood"))["items"]
        assert item["clientNetwork"] == "2001:db8:7::/48"
        nothing = await rejected(other_account)
        assert (nothing["totalCount"], {one["impressions"] for one in nothing["reasons"]}) == (0, {0})


async def test_a_publisher_sees_rejected_events_of_a_deleted_placement(publisher: Client, pool: Pool) -> None:
    placement = await publisher.make_placement()
    async with pool.acquire() as connection:
        await connection.execute(
            "INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'B', 'https://i.example/b')",
            banner := uuid4(),
        )
    event = await EventRows(pool, {"id": str(banner)}, placement).impression(Mark.CRAWLER)

    assert (await publisher.delete(f"/admin/placements/{placement['id']}")).status_code == 204

    assert await found(publisher) == [event]


@for_each(
    ("params", "fields"),
    [
        ({"from": "yesterday", "to": "today"}, {"from", "to"}),
        ({"from": "2026-11-16", "to": "2026-11-15"}, {"to"}),
        ({"from": "2026-10-15", "to": "2026-11-15"}, {"from"}),
        ({"from": "0001-01-01", "to": "9999-12-31"}, {"from"}),
        ({"reason": "occurred_at_replaced"}, {"reason"}),
        ({"reason": "weather"}, {"reason"}),
        ({"kind": "view"}, {"kind"}),
        ({"bannerId": "x", "placementId": "y", "campaignId": "z"}, {"bannerId", "placementId", "campaignId"}),
        ({"sort": "userId"}, {"sort"}),
        ({"page": "0", "pageSize": "101"}, {"page", "pageSize"}),
        ({"userId": "x"}, {"userId"}),
    ],
)
async def test_wrong_parameters_are_refused_by_field(
    admin: Client, params: dict[str, str], fields: set[str]
) -> None:
    body = problem(await admin.get(PATH, params=params), 400, "VALIDATION_FAILED")

    assert error_fields(body) == fields
    assert all(entry["message"] for entry in body["errors"])


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
async def test_any_day_may_be_requested(admin: Client, day: str) -> None:
    assert await found(admin, **{"from": day, "to": day}) == []


async def test_the_list_is_read_from_the_index_of_invalid_events(pool: Pool, rows: EventRows) -> None:
    for _ in range(3):
        await rows.impression(Mark.CRAWLER)

    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan TO off")
        plan = await connection.fetch(
            """
            EXPLAIN SELECT count(*) FROM events.banner_impressions
             WHERE NOT is_valid AND occurred_at >= '2026-11-15' AND occurred_at < '2026-11-16'
            """
        )

    assert any("occurred_at_idx" in row[0] for row in plan), plan


@for_each(
    ("address", "bare"),
    [
        (None, None),
        ("", ""),
        ("https://pub.example/a/b", "https://pub.example/a/b"),
        ("https://pub.example/a?b=c#d", "https://pub.example/a"),
        ("https://pub.example/a#d?b", "https://pub.example/a"),
        ("https://u:p@pub.example/@here", "https://pub.example/@here"),
        ("https://u@v@pub.example/", "https://pub.example/"),
        ("//u@pub.example/", "//pub.example/"),
        ("no address\nat?all", "no address\nat"),
    ],
)
def test_a_shown_url_has_no_query_and_no_credentials(address: str | None, bare: str | None) -> None:
    assert strip_address(address) == bare


async def test_a_click_that_did_not_fit_the_budget_is_listed_although_it_is_valid(
    admin: Client, rows: EventRows
) -> None:
    free = await rows.click(Mark.OVER_BUDGET)
    await rows.click()

    listed = await rejected(admin, reason="over_budget")

    [item] = listed["items"]
    assert (item["correlationId"], item["kind"], item["reasons"]) == (free, "click", ["over_budget"])
    assert listed["reasons"][-1] == {"reason": "over_budget", "impressions": 0, "clicks": 1}
    assert await found(admin) == [free]
