"""`GET /admin/stats/banners`: counts by key, per account."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from adloom.stats.api import StatsAnswer
from adloom.stats.model import Grouping
from tests.stats.event_writer import EventWriter, clicked, seen
from tests.support.builders import NOON, Json
from tests.support.control import (
    Client,
    ControlPlane,
    control_settings,
    error_fields,
    problem,
    running_control,
)
from tests.support.described import list_deviations
from tests.support.for_each import for_each

TODAY = NOON.date()
YESTERDAY = TODAY - timedelta(days=1)
NOTHING = {
    "impressions": 0,
    "clicks": 0,
    "ctr": 0.0,
    "spendPaisa": 0,
    "invalidImpressions": 0,
    "invalidClicks": 0,
    "unboundImpressions": 0,
    "unboundClicks": 0,
    "overBudgetClicks": 0,
    "conversions": 0,
    "conversionValue": 0,
}


def figures(**counts: float) -> Json:
    return {**NOTHING, **counts}


def per_visitor(counts: Json) -> Json:
    """Charges do not record the visitor: spend by country or device is unknown."""
    return {**counts, "spendPaisa": None, "overBudgetClicks": None}


async def stats(client: Client, **params: str) -> Json:
    query = {"from": YESTERDAY.isoformat(), "to": TODAY.isoformat(), **params}
    answer = await client.get("/admin/stats/banners", params=query)
    assert answer.status_code == 200, answer.text
    assert list_deviations(answer) == []
    return answer.json()


async def counted(client: Client, **params: str) -> int:
    return (await stats(client, **params))["totals"]["impressions"]


async def make_three(client: Client) -> tuple[Json, Json, Json]:
    return await client.make_banner(), await client.make_placement(), await client.make_campaign()


async def test_all_figures_are_zero_without_events(admin: Client) -> None:
    assert await stats(admin) == {"items": [], "totals": NOTHING}


@pytest.mark.parametrize("is_rolled_up", [False, True])
async def test_statistics_have_only_the_keys_of_their_grouping(
    is_rolled_up: bool,  # noqa: FBT001 - a column of the table
    admin: Client,
    writer: EventWriter,
) -> None:
    banner, placement, campaign = await make_three(admin)
    at_night = NOON.replace(hour=23)
    await writer.write(
        *[seen(banner, placement, campaign, at=NOON, country="DE", device="mobile")] * 3,
        seen(banner, placement, campaign, at=at_night, is_valid=False),
        clicked(banner, placement, campaign, at=at_night, is_valid=False),
        seen(banner, placement, campaign, at=NOON - timedelta(days=1)),
    )
    if is_rolled_up:
        await writer.roll_up()

    noon = figures(impressions=3)
    night = figures(impressions=1, clicks=1, ctr=1.0, invalidImpressions=1, invalidClicks=1)
    today = figures(impressions=4, clicks=1, ctr=0.25, invalidImpressions=1, invalidClicks=1)
    before = figures(impressions=1)
    both = figures(impressions=5, clicks=1, ctr=0.2, invalidImpressions=1, invalidClicks=1)
    unknown = figures(impressions=2, clicks=1, ctr=0.5, invalidImpressions=1, invalidClicks=1)
    assert await stats(admin) == {
        "items": [{"date": "2026-11-14", **before}, {"date": "2026-11-15", **today}],
        "totals": both,
    }

    async def items(groupings: str) -> list[Json]:
        answer = await stats(admin, groupBy=groupings)
        StatsAnswer.model_validate(answer, by_alias=True)
        is_per_visitor = "country" in groupings or "device" in groupings
        assert answer["totals"] == (per_visitor(both) if is_per_visitor else both)
        return answer["items"]

    titled = {"bannerId": banner["id"], "bannerTitle": banner["title"]}
    assert await items("banner") == [{**titled, **both}]
    assert await items("placement") == [
        {"placementId": placement["id"], "placementLabel": placement["label"], **both}
    ]
    assert await items("campaign") == [
        {"campaignId": campaign["id"], "campaignName": campaign["name"], **both}
    ]
    mobile, others = per_visitor(noon), per_visitor(unknown)
    assert await items("country") == [{"country": "DE", **mobile}, {"country": None, **others}]
    assert await items("device") == [{"device": "mobile", **mobile}, {"device": None, **others}]
    assert await items("hour") == [
        {"hour": "2026-11-14T12:00:00Z", **before},
        {"hour": "2026-11-15T12:00:00Z", **noon},
        {"hour": "2026-11-15T23:00:00Z", **night},
    ]
    assert await items("day,banner") == [
        {"date": "2026-11-14", **titled, **before},
        {"date": "2026-11-15", **titled, **today},
    ]
    assert await items("country, day , device") == [
        {"country": "DE", "date": "2026-11-15", "device": "mobile", **mobile},
        {"country": None, "date": "2026-11-14", "device": None, **per_visitor(before)},
        {"country": None, "date": "2026-11-15", "device": None, **per_visitor(night)},
    ]


@pytest.mark.parametrize("is_rolled_up", [False, True])
async def test_counts_are_summed_by_owner_site_kind_week_and_month(
    is_rolled_up: bool,  # noqa: FBT001 - a column of the table
    admin: Client,
    writer: EventWriter,
) -> None:
    advertiser, publisher = await admin.make_advertiser(), await admin.make_publisher()
    site = await admin.make_site(publisherId=publisher["id"])
    there = await admin.make_placement(siteId=site["id"], publisherId=publisher["id"])
    elsewhere = await admin.make_placement(delivery="auction")
    campaigns = [await admin.make_campaign(advertiserId=advertiser["id"]) for _ in range(2)]
    banner = await admin.make_banner(advertiserId=advertiser["id"])
    house = await admin.make_campaign()
    await writer.write(
        seen(banner, there, campaigns[0], at=NOON),
        seen(banner, elsewhere, campaigns[1], at=NOON - timedelta(days=1)),
        seen(banner, there, at=NOON),  # Without a campaign it is its banner's owner's.
        seen(banner, there, house, at=NOON),
    )
    if is_rolled_up:
        await writer.roll_up()

    async def counts(grouping: str, field: str) -> dict[str | None, int]:
        items = (await stats(admin, groupBy=grouping))["items"]
        StatsAnswer.model_validate({"items": items, "totals": NOTHING}, by_alias=True)
        assert len({item[field] for item in items}) == len(items), "a key is there once"
        return {item[field]: item["impressions"] for item in items}

    assert await counts("advertiser", "advertiserId") == {advertiser["id"]: 3, None: 1}
    assert await counts("publisher", "publisherId") == {publisher["id"]: 3, None: 1}
    assert await counts("site", "siteId") == {site["id"]: 3, None: 1}
    assert await counts("delivery", "delivery") == {"direct": 3, "auction": 1}
    assert await counts("week", "week") == {"2026-11-09": 4}
    assert await counts("month", "month") == {"2026-11-01": 4}
    together = (await stats(admin, groupBy="advertiser,site,day"))["items"]
    assert sum(item["impressions"] for item in together) == 4


async def test_days_are_those_of_the_zone_asked_for(admin: Client, writer: EventWriter) -> None:
    banner, placement = await admin.make_banner(), await admin.make_placement()
    late = NOON.replace(hour=23) - timedelta(days=1)  # After midnight in Berlin, a day later in Auckland.
    await writer.write(seen(banner, placement, at=late), seen(banner, placement, at=NOON))
    await writer.roll_up()

    async def by_day(zone: str, day: str) -> list[tuple[str, int]]:
        answer = await stats(admin, **{"timeZone": zone, "from": "2026-11-13", "to": day})
        return [(item["date"], item["impressions"]) for item in answer["items"]]

    assert await by_day("UTC", "2026-11-16") == [("2026-11-14", 1), ("2026-11-15", 1)]
    assert await by_day("Europe/Berlin", "2026-11-16") == [("2026-11-15", 2)]
    assert await by_day("Pacific/Auckland", "2026-11-15") == [("2026-11-15", 1)]
    assert await by_day("Pacific/Auckland", "2026-11-16") == [("2026-11-15", 1), ("2026-11-16", 1)]


async def test_an_unknown_zone_is_refused_by_name(admin: Client) -> None:
    query = {"from": "2026-11-14", "to": "2026-11-14", "timeZone": "Europe/Atlantis"}

    answer = await admin.get("/admin/stats/banners", params=query)

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"timeZone"}


async def test_groupings_may_be_repeated_parameters(admin: Client, writer: EventWriter) -> None:
    await writer.write(seen(await admin.make_banner(), await admin.make_placement()))
    query = {"from": "2026-11-14", "to": "2026-11-14", "groupBy": ["day", "hour,campaign"]}

    [item] = (await admin.get("/admin/stats/banners", params=query)).json()["items"]

    assert item.keys() - NOTHING.keys() == {"date", "hour", "campaignId", "campaignName"}


async def test_events_without_a_campaign_form_their_own_group(admin: Client, writer: EventWriter) -> None:
    banner, placement = await admin.make_banner(), await admin.make_placement()
    await writer.write(seen(banner, placement))

    [item] = (await stats(admin, groupBy="campaign"))["items"]

    assert (item["campaignId"], item["impressions"]) == (None, 1)


@pytest.mark.parametrize("is_rolled_up", [False, True])
async def test_statistics_can_be_filtered(
    is_rolled_up: bool,  # noqa: FBT001 - a column of the table
    admin: Client,
    writer: EventWriter,
) -> None:
    one, other = await admin.make_banner(), await admin.make_banner()
    here, there = await admin.make_placement(), await admin.make_placement()
    campaign = await admin.make_campaign()
    await writer.write(
        seen(one, here, campaign, country="DE", device="mobile"),
        seen(one, there, country="DE"),
        seen(other, here, country="FR", device="tablet"),
        seen(other, there),
    )
    if is_rolled_up:
        await writer.roll_up()

    assert await counted(admin) == 4
    assert await counted(admin, bannerId=one["id"]) == 2
    assert await counted(admin, placementId=here["id"]) == 2
    assert await counted(admin, campaignId=campaign["id"]) == 1
    assert await counted(admin, bannerId=one["id"], placementId=there["id"]) == 1
    assert await counted(admin, country="DE") == await counted(admin, country="de") == 2
    assert await counted(admin, country="unknown") == 1
    assert await counted(admin, device="tablet") == 1
    assert await counted(admin, device="unknown", country="DE") == 1
    assert await counted(admin, **{"from": TODAY.isoformat()}) == 0
    assert await counted(admin, bannerId=str(uuid4())) == 0


@pytest.mark.parametrize("is_rolled_up", [False, True])
async def test_a_publisher_still_sees_the_figures_of_a_deleted_placement(
    is_rolled_up: bool,  # noqa: FBT001 - a column of the table
    admin: Client,
    publisher: Client,
    writer: EventWriter,
) -> None:
    placement = await publisher.make_placement()
    await writer.write(seen(await admin.make_banner(), placement))
    assert (await publisher.delete(f"/admin/placements/{placement['id']}")).status_code == 204
    if is_rolled_up:
        await writer.roll_up()

    for client in (admin, publisher):
        [item] = (await stats(client, groupBy="placement", placementId=placement["id"]))["items"]
        assert (item["placementId"], item["impressions"]) == (placement["id"], 1)


async def test_yesterday_is_exact_before_during_and_after_its_rollup(
    admin: Client, writer: EventWriter, pool: Pool
) -> None:
    banner, placement, campaign = await make_three(admin)
    for total in range(1, 4):
        await writer.write(seen(banner, placement, campaign))  # From here on the day is stale.
        assert await counted(admin) == await counted(admin, groupBy="banner") == total

        await writer.roll_up()
        assert await counted(admin) == await counted(admin, groupBy="banner") == total
    await pool.execute("DELETE FROM events.event_counts")
    assert await counted(admin) == 3
    assert await counted(admin, groupBy="hour") == 0


async def test_today_is_read_from_the_counts_even_after_a_rollup(
    admin: Client, writer: EventWriter, pool: Pool
) -> None:
    await writer.write(seen(await admin.make_banner(), await admin.make_placement(), at=NOON))
    await writer.roll_up()
    await pool.execute("UPDATE events.event_counts SET impressions = 7")

    assert await counted(admin) == 7


async def test_the_first_and_last_possible_day_may_be_requested(admin: Client, writer: EventWriter) -> None:
    await writer.write(seen(await admin.make_banner(), await admin.make_placement()))
    await writer.roll_up()

    assert await counted(admin, **{"from": "0001-01-01", "to": "9999-12-31"}) == 1


@pytest.mark.parametrize(
    ("moment", "day"),
    [
        (datetime(2026, 11, 13, 23, 59, 59, 999_999, tzinfo=UTC), "2026-11-13"),
        (datetime(2026, 11, 14, tzinfo=UTC), "2026-11-14"),
        (datetime(2026, 11, 14, 23, 59, 59, 999_999, tzinfo=UTC), "2026-11-14"),
        (datetime(2026, 11, 15, tzinfo=UTC), "2026-11-15"),
    ],
)
async def test_a_day_of_the_statistics_is_a_utc_day_in_both_sources(
    moment: datetime, day: str, admin: Client, writer: EventWriter, pool: Pool
) -> None:
    database = await pool.fetchval("SELECT current_database()")
    await pool.execute(f"ALTER DATABASE {database} SET timezone = 'America/New_York'")
    await pool.expire_connections()
    await writer.write(seen(await admin.make_banner(), await admin.make_placement(), at=moment))
    wide = {"from": "2026-11-01", "to": "2026-11-30"}

    for _ in ("live", "rolled up"):
        assert [item["date"] for item in (await stats(admin, **wide))["items"]] == [day]
        assert await counted(admin, **{"from": day, "to": day}) == 1
        [item] = (await stats(admin, **wide, groupBy="hour"))["items"]
        assert item["hour"] == f"{moment:%Y-%m-%dT%H}:00:00Z"
        await writer.roll_up()


@pytest.mark.parametrize("is_rolled_up", [False, True])
async def test_an_account_sees_only_its_own_counts_in_any_grouping_and_format(
    is_rolled_up: bool,  # noqa: FBT001 - a column of the table
    admin: Client,
    advertiser: Client,
    publisher: Client,
    writer: EventWriter,
) -> None:
    banner, campaign = await advertiser.make_banner(), await advertiser.make_campaign()
    placement = await publisher.make_placement()
    foreign_banner, foreign_placement, foreign_campaign = await make_three(admin)
    await writer.write(
        seen(banner, placement, campaign, country="DE"),
        seen(banner, foreign_placement, country="FR"),
        seen(foreign_banner, placement, foreign_campaign, country="IN"),
        *[seen(foreign_banner, foreign_placement, country="US", device="desktop")] * 4711,
        # Another account's campaign may use this banner: the counts belong to the campaign.
        *[seen(banner, foreign_placement, foreign_campaign, country="US")] * 4711,
    )
    if is_rolled_up:
        await writer.roll_up()

    assert await counted(admin) == 9425
    for grouping in [*Grouping, ",".join(Grouping)]:
        assert await counted(advertiser, groupBy=grouping) == 2
        assert await counted(publisher, groupBy=grouping) == 2
        for client, hidden in ((advertiser, [foreign_campaign]), (publisher, [foreign_placement])):
            query = {"from": "2026-11-14", "to": "2026-11-14", "groupBy": grouping}
            for written in ("json", "csv"):
                text = (await client.get("/admin/stats/banners", params={**query, "format": written})).text
                assert not any(word in text for word in ("4711", "9422", "US", "desktop"))
                assert not any(thing["id"] in text for thing in hidden)
    assert await counted(advertiser, campaignId=foreign_campaign["id"]) == 0
    assert await counted(advertiser, bannerId=foreign_banner["id"]) == 0
    assert await counted(publisher, placementId=foreign_placement["id"]) == 0
    assert await counted(publisher, country="US") == 0


async def test_a_viewer_sees_all_and_another_account_nothing(
    control: ControlPlane, admin: Client, writer: EventWriter
) -> None:
    await writer.write(seen(await admin.make_banner(), await admin.make_placement()))

    async with control.acting_as(Role.VIEWER) as viewer, control.acting_as(Role.ADVERTISER) as other_account:
        assert (await stats(viewer))["totals"]["impressions"] == 1
        assert (await stats(other_account))["items"] == []


@for_each(
    ("params", "fields"),
    [
        ({"from": "yesterday", "to": "today"}, {"from", "to"}),
        ({"from": "1700000000", "to": "2026-11-15"}, {"from"}),
        ({"from": "2026-11-16", "to": "2026-11-15"}, {"to"}),
        ({"to": "2026-11-15", "from": None}, {"from"}),
        ({"groupBy": "fortnight"}, {"groupBy"}),
        ({"groupBy": ""}, {"groupBy"}),
        ({"groupBy": "day,,banner"}, {"groupBy"}),
        ({"groupBy": "day,banner,day"}, {"groupBy"}),
        ({"groupBy": "Day"}, {"groupBy"}),
        ({"country": "DEU"}, {"country"}),
        ({"country": "=1"}, {"country"}),
        ({"country": "ÄÖ"}, {"country"}),
        ({"device": "fridge"}, {"device"}),
        ({"format": "xml"}, {"format"}),
        ({"bannerId": "x"}, {"bannerId"}),
        ({"bannerid": "x"}, {"bannerid"}),
        ({"from": "2025-10-01", "groupBy": "hour"}, {"from"}),
        ({"from": "2025-10-01", "groupBy": "banner,country"}, {"from"}),
        ({"from": "2025-10-01", "device": "mobile"}, {"from"}),
    ],
)
async def test_what_cannot_be_asked_is_refused_by_field(
    admin: Client, params: dict[str, str | None], fields: set[str]
) -> None:
    query = {"from": "2026-11-15", "to": "2026-11-15", **params}
    given = {name: value for name, value in query.items() if value is not None}

    body = problem(await admin.get("/admin/stats/banners", params=given), 400, "VALIDATION_FAILED")

    assert error_fields(body) == fields


async def test_the_error_for_a_too_long_hourly_range_says_how_to_shorten_it(admin: Client) -> None:
    query = {"from": "2025-01-01", "to": "2026-11-15", "groupBy": "hour"}

    body = problem(await admin.get("/admin/stats/banners", params=query), 400, "VALIDATION_FAILED")

    assert body["errors"][0]["message"] == (
        "must be less than 400 days before `to` where hours, countries, devices or another time zone are asked for"
    )


async def test_a_query_with_too_many_rows_is_refused(admin: Client, pool: Pool) -> None:
    await pool.execute(
        "INSERT INTO banners (public_id, title, primary_image_url)"
        " SELECT gen_random_uuid(), 'B', 'https://x/' FROM generate_series(1, 1001)"
    )
    await pool.execute(
        "INSERT INTO placements (public_id, slug, label, layout_type)"
        " SELECT gen_random_uuid(), 'p' || n, 'P', 'full_slider' FROM generate_series(1, 100) AS n"
    )
    await pool.execute(
        "INSERT INTO events.event_counts (hour, banner_id, placement_id, impressions)"
        " SELECT $1, banner, placement, 1 FROM generate_series(1, 1001) AS banner, generate_series(1, 100) AS placement",
        NOON,
    )
    query: Any = {"from": "2026-11-15", "to": "2026-11-15", "groupBy": "banner,placement"}

    body = problem(await admin.get("/admin/stats/banners", params=query), 400, "VALIDATION_FAILED")
    assert error_fields(body) == {"groupBy"}
    assert "100,000 rows" in body["detail"]

    await pool.execute("DELETE FROM events.event_counts WHERE banner_id = 1")
    answer = await admin.get("/admin/stats/banners", params=query)
    assert len(answer.json()["items"]) == 100_000
    assert len(answer.content) < 36_000_000


async def test_statistics_need_a_token(control: ControlPlane) -> None:
    async with control.client() as anonymous:
        problem(await anonymous.get("/admin/stats/banners"), 401, "UNAUTHENTICATED")


async def test_publishers_are_not_told_what_advertisers_sell(
    admin: Client, publisher: Client, writer: EventWriter, pool: Pool
) -> None:
    banner, placement, campaign = (
        await admin.make_banner(),
        await publisher.make_placement(),
        await admin.make_campaign(),
    )
    await writer.write(seen(banner, placement, campaign))
    await pool.execute("UPDATE events.event_counts SET conversions = 2, conversion_micros = 12500000")

    told = [(await stats(client))["totals"] for client in (admin, publisher)]

    assert [(one["conversions"], one["conversionValue"]) for one in told] == [(2, 12.5), (None, None)]


async def test_only_those_who_see_all_accounts_have_unbound_events_among_the_others(
    control: ControlPlane, admin: Client, writer: EventWriter
) -> None:
    advertiser = await admin.make_advertiser()
    campaign = await admin.make_campaign(advertiserId=advertiser["id"])
    banner, placement = await admin.make_banner(advertiserId=advertiser["id"]), await admin.make_placement()
    await writer.write(
        seen(banner, placement, campaign),
        seen(banner, placement, campaign, mark="unbound"),
        clicked(banner, placement, campaign, mark="unbound"),
        clicked(banner, placement, campaign, mark="not_assigned"),
    )

    async with control.acting_as(Role.ADVERTISER, UUID(advertiser["id"])) as account:
        own = (await stats(account))["totals"]
    everything = (await stats(admin))["totals"]

    unbound = {"unboundImpressions": 1, "unboundClicks": 1}
    assert own == figures(impressions=1, **unbound)
    assert everything == figures(impressions=2, clicks=1, ctr=0.5, **unbound)


async def test_an_installation_that_refuses_unbound_events_does_not_count_old_ones(
    database_url: str, redis_url: str, writer: EventWriter
) -> None:
    settings = control_settings(database_url, redis_url, unbound_events="refuse")
    async with running_control(settings) as control, control.acting_as(Role.ADMIN) as admin:
        banner, placement, campaign = await make_three(admin)
        await writer.write(seen(banner, placement, campaign, mark="unbound"))

        assert (await stats(admin))["totals"] == figures(unboundImpressions=1)
