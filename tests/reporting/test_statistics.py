"""`GET /admin/stats/banners`: what was counted, by key, and nobody else's."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from adloom.core.actor import Role
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.ledger.event import Event
from adloom.ledger.store import EventTables
from adloom.runtime.postgres import Pool
from tests.ledger.builders import NOW, a_click, an_impression
from tests.support.control import Client, ControlPlane, error_fields, problem

TODAY = NOW.date()
YESTERDAY = TODAY - timedelta(days=1)
Json = dict[str, Any]


class Books:
    """Folds events as the worker does; each call is a batch."""

    def __init__(self, pool: Pool) -> None:
        self._tables = EventTables(pool)
        self._sequence = 0

    async def fold(self, *events: Event) -> None:
        after = await self._tables.cursor()
        self._sequence += 1
        await self._tables.commit(events, after=after, cursor=f"{self._sequence}-0")


@pytest.fixture
def books(pool: Pool) -> Books:
    return Books(pool)


@pytest.fixture
async def advertiser(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.ADVERTISER, uuid4()) as client:
        yield client


@pytest.fixture
async def publisher(control: ControlPlane) -> AsyncGenerator[Client]:
    async with control.acting_as(Role.PUBLISHER, uuid4()) as client:
        yield client


def where(banner: Json, placement: Json, campaign: Json | None, **fields: Any) -> Json:
    return {
        "correlation_id": str(uuid4()),
        "banner_id": BannerId(UUID(banner["id"])),
        "placement_id": PlacementId(UUID(placement["id"])),
        "campaign_id": campaign and CampaignId(UUID(campaign["id"])),
        **fields,
    }


async def stats(client: Client, **params: str) -> Json:
    query = {"from": YESTERDAY.isoformat(), "to": TODAY.isoformat(), **params}
    answer = await client.get("/admin/stats/banners", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_without_events_everything_is_nothing(admin: Client) -> None:
    assert await stats(admin) == {
        "items": [],
        "totals": {"impressions": 0, "clicks": 0, "ctr": 0.0, "spendPaisa": 0},
    }


async def test_statistics_carry_the_key_of_their_grouping_and_no_other(admin: Client, books: Books) -> None:
    banner, placement, campaign = (
        await admin.make_banner(),
        await admin.make_placement(),
        await admin.make_campaign(),
    )

    def place(**fields: Any) -> Json:
        return where(banner, placement, campaign, **fields)

    await books.fold(*(an_impression(**place()) for _ in range(4)), a_click(**place()))
    await books.fold(an_impression(**place(occurred_at=NOW - timedelta(days=1))))

    today = {"impressions": 4, "clicks": 1, "ctr": 0.25, "spendPaisa": 0}
    both = {"impressions": 5, "clicks": 1, "ctr": 0.2, "spendPaisa": 0}
    before = {"impressions": 1, "clicks": 0, "ctr": 0.0, "spendPaisa": 0}
    assert await stats(admin) == {
        "items": [{"date": YESTERDAY.isoformat(), **before}, {"date": TODAY.isoformat(), **today}],
        "totals": both,
    }
    assert (await stats(admin, groupBy="banner"))["items"] == [{"bannerId": banner["id"], **both}]
    assert (await stats(admin, groupBy="placement"))["items"] == [{"placementId": placement["id"], **both}]
    assert (await stats(admin, groupBy="campaign"))["items"] == [{"campaignId": campaign["id"], **both}]


async def test_events_without_a_campaign_are_a_group_of_their_own(admin: Client, books: Books) -> None:
    banner, placement = await admin.make_banner(), await admin.make_placement()
    await books.fold(an_impression(**where(banner, placement, None)))

    [item] = (await stats(admin, groupBy="campaign"))["items"]

    assert (item["campaignId"], item["impressions"]) == (None, 1)


async def test_statistics_can_be_narrowed(admin: Client, books: Books) -> None:
    one, other = await admin.make_banner(), await admin.make_banner()
    here, there = await admin.make_placement(), await admin.make_placement()
    campaign = await admin.make_campaign()
    await books.fold(
        an_impression(**where(one, here, campaign)),
        an_impression(**where(one, there, None)),
        an_impression(**where(other, here, None)),
    )

    async def counted(**params: str) -> int:
        return (await stats(admin, **params))["totals"]["impressions"]

    assert await counted(bannerId=one["id"]) == 2
    assert await counted(placementId=here["id"]) == 2
    assert await counted(campaignId=campaign["id"]) == 1
    assert await counted(bannerId=one["id"], placementId=there["id"]) == 1
    assert await counted(**{"from": YESTERDAY.isoformat(), "to": YESTERDAY.isoformat()}) == 0
    assert await counted(bannerId=str(uuid4())) == 0


async def test_an_account_sees_the_counts_of_its_own_things_only(
    admin: Client, advertiser: Client, publisher: Client, books: Books
) -> None:
    banner, campaign = await advertiser.make_banner(), await advertiser.make_campaign()
    placement = await publisher.make_placement()
    house_banner, house_campaign = await admin.make_banner(), await admin.make_campaign()
    house_placement = await admin.make_placement()
    await books.fold(
        an_impression(**where(banner, placement, campaign)),
        an_impression(**where(banner, house_placement, None)),
        an_impression(**where(house_banner, placement, house_campaign)),
        an_impression(**where(house_banner, house_placement, None)),
    )

    async def counted(client: Client, **params: str) -> int:
        return (await stats(client, **params))["totals"]["impressions"]

    assert await counted(admin) == 4
    assert await counted(advertiser) == 2
    assert await counted(publisher) == 2
    assert await counted(advertiser, bannerId=house_banner["id"]) == 0
    assert await counted(publisher, placementId=house_placement["id"]) == 0


async def test_a_viewer_sees_all_and_another_account_nothing(
    control: ControlPlane, admin: Client, books: Books
) -> None:
    await books.fold(an_impression(**where(await admin.make_banner(), await admin.make_placement(), None)))

    async with control.acting_as(Role.VIEWER) as viewer, control.acting_as(Role.ADVERTISER) as stranger:
        assert (await stats(viewer))["totals"]["impressions"] == 1
        assert (await stats(stranger))["items"] == []


@pytest.mark.parametrize(
    ("params", "fields"),
    [
        ({"from": "yesterday", "to": "today"}, {"from", "to"}),
        ({"from": "1700000000", "to": "2026-11-15"}, {"from"}),
        ({"from": "2026-11-16", "to": "2026-11-15"}, {"to"}),
        ({"to": "2026-11-15"}, {"from"}),
        ({"from": "2026-11-15", "to": "2026-11-15", "groupBy": "hour"}, {"groupBy"}),
        ({"from": "2026-11-15", "to": "2026-11-15", "bannerId": "x"}, {"bannerId"}),
        ({"from": "2026-11-15", "to": "2026-11-15", "bannerid": "x"}, {"bannerid"}),
    ],
)
async def test_what_cannot_be_asked_is_refused_by_field(
    admin: Client, params: dict[str, str], fields: set[str]
) -> None:
    body = problem(await admin.get("/admin/stats/banners", params=params), 400, "VALIDATION_FAILED")

    assert error_fields(body) == fields


async def test_statistics_need_a_token(control: ControlPlane) -> None:
    async with control.client() as nobody:
        problem(await nobody.get("/admin/stats/banners"), 401, "UNAUTHENTICATED")
