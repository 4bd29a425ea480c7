"""Addresses of campaigns are looked up once, as long as there is room to remember them."""

from collections.abc import Sequence
from uuid import UUID

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.config.entity_config import CatalogAddresses
from adloom.core.ids import AdvertiserId, CampaignId


class CountingCatalog:
    """A catalog of campaigns without advertisers, which notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[UUID] = []

    async def load_payers(self, campaign_ids: Sequence[UUID]) -> dict[UUID, AdvertiserId | None]:
        self.asked += campaign_ids
        return dict.fromkeys(campaign_ids)


async def test_a_campaign_keeps_its_address_when_others_fill_the_room() -> None:
    """Without one its confirms would be dropped, and its offers never charged."""
    catalog = CountingCatalog()
    addresses = CatalogAddresses(catalog, remembered_max=3)
    first, *others = [UUID(int=number) for number in range(1, 5)]
    await addresses.find([first])

    found = await addresses.find([first, *others])

    assert {one: found.get(one) for one in (first, *others)} == {
        one: make_campaign_address(CampaignId(one), None) for one in (first, *others)
    }


async def test_a_campaign_is_looked_up_once() -> None:
    catalog = CountingCatalog()
    addresses = CatalogAddresses(catalog)

    for _ in range(3):
        await addresses.find([UUID(int=1), UUID(int=2)])

    assert catalog.asked == [UUID(int=1), UUID(int=2)]
