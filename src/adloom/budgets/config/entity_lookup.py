"""Addresses of campaigns. A campaign's advertiser never changes, so look-ups are cached."""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from adloom.budgets.addresses import campaign_address
from adloom.budgets.config.catalog_store import BudgetCatalog
from adloom.core.ids import CampaignId
from adloom.runtime.actors.actor import Address

REMEMBERED_MAX: Final = 200_000  # About 80 MB; beyond, all are forgotten and looked up again.


class CatalogAddresses:
    """Looks the addresses of campaigns up in the catalog."""

    def __init__(self, catalog: BudgetCatalog) -> None:
        self._catalog = catalog
        self._known: dict[UUID, Address] = {}

    async def find(self, campaign_ids: Iterable[UUID]) -> Mapping[UUID, Address]:
        """Campaigns that are not in the catalog are left out."""
        unknown = [one for one in campaign_ids if one not in self._known]
        if unknown:
            payers = await self._catalog.load_payers(unknown)
            if len(self._known) + len(payers) > REMEMBERED_MAX:
                self._known.clear()
            self._known |= {one: campaign_address(CampaignId(one), payer) for one, payer in payers.items()}
        return self._known
