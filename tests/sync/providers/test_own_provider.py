"""Our own delivery as an ad platform: entities linked by external id, day by day, in the account's zone."""

from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest

from adloom.runtime.postgres import Pool
from adloom.sync.figures import compute_ratios
from adloom.sync.providers.own import OwnProvider, find_linked
from adloom.sync.providers.protocol import ProviderRefusedError, StatRow
from adloom.sync.words import Level, Platform
from tests.sync.builders import DAY, a_request, an_account, an_entity
from tests.sync.shop import insert

NOON = datetime(2026, 2, 19, 12, tzinfo=UTC)
ONE_DAY = timedelta(days=1)


class Delivered(msgspec.Struct, frozen=True):
    """A campaign with two banners on two placements."""

    seller_id: UUID
    campaign: tuple[int, UUID]
    placements: list[tuple[int, UUID]]
    banners: list[tuple[int, UUID]]

    @property
    def campaign_id(self) -> str:
        return str(self.campaign[1])


@pytest.fixture
async def delivered(pool: Pool) -> Delivered:
    key, seller_id = await insert(pool, "advertisers", name="a seller")
    campaign = await insert(pool, "campaigns", name="C", advertiser_id=key)
    placements = [
        await insert(pool, "placements", slug=slug, label=slug, layout_type="full_slider")
        for slug in ("home", "side")
    ]
    image = {"primary_image_url": "https://cdn.example.com/a.png", "advertiser_id": key}
    banners = [await insert(pool, "banners", title=title, **image) for title in ("one", "other")]
    return Delivered(seller_id, campaign, placements, banners)


async def counted(pool: Pool, it: Delivered, *, place: int = 0, hour: datetime = NOON, **given: Any) -> None:
    """Insert counted events of an hour, and the charges for them."""
    keys = (hour, it.banners[place][0], it.placements[place][0], it.campaign[0])
    spent = given.pop("spent_micros", 0)
    fields = {"impressions": 0, "clicks": 0, "invalid_impressions": 0, "invalid_clicks": 0} | given
    await pool.execute(
        """
        INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id,
            impressions, clicks, invalid_impressions, invalid_clicks) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        *keys,
        *fields.values(),
    )
    await pool.execute(
        """
        INSERT INTO spend_hours (hour, banner_id, placement_id, campaign_id, charges, spent_micros)
        VALUES ($1, $2, $3, $4, 1, $5)
        """,
        *keys,
        spent,
    )


async def fetched(pool: Pool, it: Delivered, **given: Any) -> list[StatRow]:
    account = an_account(platform=Platform.ADLOOM, credentials=None, timezone=given.pop("timezone", "UTC"))
    request = a_request(**({"seller_id": it.seller_id, "account": account} | given))
    return [row async for page in OwnProvider(pool).fetch(request) for row in page]


async def test_a_linked_campaign_reports_its_delivery_and_charges(pool: Pool, delivered: Delivered) -> None:
    await counted(pool, delivered, impressions=1_000, invalid_impressions=100, clicks=30, invalid_clicks=5)
    await counted(pool, delivered, place=1, impressions=100, spent_micros=12_345_000)
    entity = an_entity(external_id=delivered.campaign_id)

    (row,) = await fetched(pool, delivered, entities=[entity])

    figures = row.figures
    assert (row.entity_id, row.external_entity_id) == (entity.id, delivered.campaign_id)
    assert (figures.impressions, figures.link_clicks, figures.spend) == (1_000, 25, Decimal("12.35"))
    assert (figures.purchases, figures.purchase_value) == (0, 0)
    assert compute_ratios(row.figures).ctr == Decimal("0.0250")


async def test_ad_sets_are_placements_and_ads_are_banners(pool: Pool, delivered: Delivered) -> None:
    await counted(pool, delivered, impressions=10)
    await counted(pool, delivered, place=1, impressions=20)
    home, side = (str(public_id) for _, public_id in delivered.placements)
    one, other = (str(public_id) for _, public_id in delivered.banners)
    adset = an_entity(external_id=side, above=(delivered.campaign_id,))
    ads = [
        an_entity(external_id=one, above=(delivered.campaign_id, home)),
        an_entity(external_id=other, above=(delivered.campaign_id, home)),
    ]

    sets = await fetched(pool, delivered, entities=[adset], level=Level.ADSET)
    shown = await fetched(pool, delivered, entities=ads, level=Level.AD)

    assert [row.figures.impressions for row in sets] == [20]
    assert {row.entity_id: row.figures.impressions for row in shown} == {ads[0].id: 10, ads[1].id: 0}


async def test_days_are_in_the_accounts_time_zone(pool: Pool, delivered: Delivered) -> None:
    await counted(pool, delivered, hour=datetime(2026, 2, 19, 16, tzinfo=UTC), impressions=1)
    await counted(pool, delivered, hour=datetime(2026, 2, 18, 15, tzinfo=UTC), impressions=2)
    entity = an_entity(external_id=delivered.campaign_id)
    days = {"first": DAY, "last": DAY + timedelta(days=1)}

    rows = await fetched(pool, delivered, entities=[entity], timezone="Asia/Tokyo", **days)

    assert [(row.date_start, row.figures.impressions) for row in rows] == [
        (DAY, 2),
        (DAY + timedelta(days=1), 1),
    ]


# PostgreSQL takes CET for a fixed hour; in Santiago and Nuuk clocks change at midnight.
@pytest.mark.parametrize(
    ("timezone", "first"),
    [
        ("CET", date(2026, 7, 1)),
        ("CET", date(2026, 10, 24)),
        ("America/Santiago", date(2026, 4, 3)),
        ("America/Nuuk", date(2026, 3, 27)),
    ],
)
async def test_every_hour_is_in_the_day_that_the_account_has_then(
    pool: Pool, delivered: Delivered, timezone: str, first: date
) -> None:
    zone = ZoneInfo(timezone)
    begins = datetime.combine(first, time(), zone).astimezone(UTC)
    moments = [begins + timedelta(hours=number) for number in range(-30, 110)]
    for moment in moments:
        await counted(pool, delivered, hour=moment, impressions=1)
    wanted = Counter(
        day for at in moments if first <= (day := at.astimezone(zone).date()) <= first + 2 * ONE_DAY
    )
    entity = an_entity(external_id=delivered.campaign_id)

    rows = await fetched(
        pool, delivered, entities=[entity], timezone=timezone, first=first, last=first + 2 * ONE_DAY
    )

    assert {row.date_start: row.figures.impressions for row in rows} == wanted


async def test_a_campaign_of_another_seller_is_not_reported(pool: Pool, delivered: Delivered) -> None:
    await counted(pool, delivered, impressions=10)
    _, other_seller = await insert(pool, "advertisers", name="another seller")
    entity = an_entity(external_id=delivered.campaign_id)

    assert await fetched(pool, delivered, seller_id=other_seller, entities=[entity]) == []


async def test_charges_are_not_reported_in_another_currency(pool: Pool, delivered: Delivered) -> None:
    entity = an_entity(external_id=delivered.campaign_id)
    dollars, euros = (
        a_request(
            seller_id=delivered.seller_id,
            account=an_account(platform=Platform.ADLOOM, currency=currency),
            entities=[entity],
        )
        for currency in ("USD", "EUR")
    )
    provider = OwnProvider(pool, currency="EUR")

    with pytest.raises(ProviderRefusedError, match="charges in EUR, and the account here is in USD"):
        _ = [page async for page in provider.fetch(dollars)]

    assert len([page async for page in provider.fetch(euros)]) == 1


async def test_an_unknown_time_zone_is_refused(pool: Pool, delivered: Delivered) -> None:
    with pytest.raises(ProviderRefusedError, match="No/Zone"):
        await fetched(
            pool, delivered, timezone="No/Zone", entities=[an_entity(external_id=delivered.campaign_id)]
        )


@pytest.mark.parametrize("path", [(None,), ("not an id",), (None, "0199a0b0-0000-7000-8000-000000000000")])
def test_an_entity_with_an_unlinked_parent_is_not_linked(path: tuple[str | None, ...]) -> None:
    *above, external_id = path

    assert find_linked(an_entity(external_id=external_id, above=tuple(above))) is None
