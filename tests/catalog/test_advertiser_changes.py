"""Changes of an advertiser reach the budgets, and the index as far as its campaigns depend on them."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from adloom.catalog.advertiser import Advertiser, advertisers
from adloom.core.ids import AdvertiserId
from adloom.resource.access import Scope
from adloom.resource.changes import Catalog
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.rows import an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def an_advertiser(**fields: Any) -> Advertiser:
    return msgspec.structs.replace(
        Advertiser(
            id=AdvertiserId(an_id(1)),
            name="A",
            daily_budget_paisa=100,
            timezone="UTC",
            blocked_sites=(),
            created_at=NOON,
            updated_at=NOON,
            deleted_at=None,
        ),
        **fields,
    )


@pytest.mark.parametrize(
    ("changes", "touched"),
    [
        ({"name": "B"}, set[str]()),
        ({"daily_budget_paisa": 200}, {"advertiser"}),
        ({"blocked_sites": ("a.example",)}, {"advertiser", "campaign"}),
        ({"daily_budget_paisa": None}, {"advertiser", "campaign"}),
        ({"timezone": "Asia/Kolkata"}, {"advertiser", "campaign"}),
        ({"deleted_at": NOON}, {"advertiser", "campaign", "banner"}),
    ],
)
async def test_a_change_of_an_advertiser_touches_what_depends_on_it(
    pool: Pool, valkey: Valkey, changes: dict[str, Any], touched: set[str]
) -> None:
    catalog = Catalog(pool, valkey)
    async with catalog.write() as write:
        await advertisers.insert(write, an_advertiser())
        await write.connection.execute(
            "INSERT INTO campaigns (public_id, name, advertiser_id) SELECT $1, 'C', id FROM advertisers",
            an_id(2),
        )
        await write.connection.execute(
            "INSERT INTO banners (public_id, title, primary_image_url, advertiser_id) "
            "SELECT $1, 'B', 'https://i.example/a.png', id FROM advertisers",
            an_id(3),
        )

    async with catalog.write() as write:
        await advertisers.update(write, Scope(None), an_advertiser(), an_advertiser(**changes))

    rows = await pool.fetch("SELECT noun FROM catalog_changes")
    assert {row["noun"] for row in rows} == touched
