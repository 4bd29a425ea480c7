"""Configures campaigns and advertisers from the catalog before their first message, and finds their addresses."""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol
from uuid import UUID

import msgspec
import structlog

from adloom.budgets.addresses import (
    ADVERTISER,
    CAMPAIGN,
    make_advertiser_address,
    make_campaign_address,
    parse_advertiser_key,
    parse_campaign_key,
)
from adloom.budgets.config.catalog_store import BudgetCatalog
from adloom.budgets.config.configuration import build_advertiser_config, build_campaign_config
from adloom.core.clock import Clock
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.runtime.actors.actor import Address

# An actor that was just configured may have no stored state yet.
RECENT_SECONDS: Final = 60.0
RECENT_MAX: Final = 100_000

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class EntityConfigurer:
    """Reads the catalog for actors that become active."""

    def __init__(self, catalog: BudgetCatalog, clock: Clock, *, hold_seconds: int) -> None:
        self._catalog = catalog
        self._clock = clock
        self._hold_seconds = hold_seconds
        self._recent: OrderedDict[Address, float] = OrderedDict()  # In order of time.

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        """Actors that are not in the catalog, or not under this address, get none."""
        self._note(addresses)
        found = await self.load_configurations(addresses)
        if len(found) < len(addresses):
            unknown = [address.key for address in addresses if address not in found]
            log.warning("brain_not_in_catalog", keys=unknown[:10], count=len(unknown))
        return {address: [message] for address, message in found.items()}

    async def load_configurations(self, addresses: Sequence[Address]) -> dict[Address, msgspec.Struct]:
        """Read at one version of the catalog."""
        campaigns = [parse_campaign_key(one.key)[0] for one in addresses if one.kind == CAMPAIGN]
        advertisers = [parse_advertiser_key(one.key) for one in addresses if one.kind == ADVERTISER]
        rows = await self._catalog.load_rows(campaigns, advertisers)
        now = self._clock.now()
        told: dict[Address, msgspec.Struct] = {}
        for row in rows.campaigns:
            campaign = build_campaign_config(
                row, version=rows.version, hold_seconds=self._hold_seconds, now=now
            )
            told[make_campaign_address(campaign.campaign_id, campaign.advertiser_id)] = campaign
        for row in rows.advertisers:
            advertiser = build_advertiser_config(row, version=rows.version)
            told[make_advertiser_address(advertiser.advertiser_id)] = advertiser
        # One campaign under two addresses would have its budget twice.
        return {address: told[address] for address in addresses if address in told}

    def filter_recent(self, addresses: Iterable[Address]) -> list[Address]:
        """Return those that may just have got an older configuration than the catalog's."""
        oldest = self._measure_seconds() - RECENT_SECONDS
        return [address for address in addresses if self._recent.get(address, oldest) > oldest]

    def _note(self, addresses: Iterable[Address]) -> None:
        now = self._measure_seconds()
        for address in addresses:
            self._recent.pop(address, None)
            self._recent[address] = now
        while self._recent:
            first = next(iter(self._recent))
            if self._recent[first] > now - RECENT_SECONDS and len(self._recent) <= RECENT_MAX:
                break
            del self._recent[first]

    def _measure_seconds(self) -> float:
        return self._clock.now().timestamp()


REMEMBERED_MAX: Final = 200_000  # About 80 MB; beyond, all are forgotten and looked up again.


class Payers(Protocol):
    """Knows the advertisers of campaigns."""

    async def load_payers(self, campaign_ids: Sequence[UUID]) -> Mapping[UUID, AdvertiserId | None]: ...


class CatalogAddresses:
    """Looks the addresses of campaigns up in the catalog."""

    def __init__(self, catalog: Payers, *, remembered_max: int = REMEMBERED_MAX) -> None:
        self._catalog = catalog
        self._remembered_max = remembered_max
        self._known: dict[UUID, Address] = {}

    async def find(self, campaign_ids: Collection[UUID]) -> Mapping[UUID, Address]:
        """Campaigns that are not in the catalog are left out."""
        unknown = [one for one in campaign_ids if one not in self._known]
        if unknown:
            if len(self._known) + len(unknown) > self._remembered_max:
                self._known, unknown = {}, [*campaign_ids]
            payers = await self._catalog.load_payers(unknown)
            self._known |= {
                one: make_campaign_address(CampaignId(one), payer) for one, payer in payers.items()
            }
        return self._known
