"""The market on several machines: what its actors read themselves, and what the leading worker sends them.

Lists of all campaigns are too large for messages: the directory reads them from the catalog itself, when it wakes and
every half minute. Then auctioneers read their configuration and the versions of categories, should they have missed a
change: a bidder that has moved to another worker does not know which sites had asked it.

The follower knows neither which actors are in memory nor what they have read. So when it begins, all of them read anew;
after that it sends changes.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.campaign.demand import DIRECTORY
from adloom.budgets.messages import CheckClock
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.ids import SiteId
from adloom.market.demand_store import MarketChanges, load_all, load_changes
from adloom.market.follower import MarketFollower
from adloom.market.messages import AllDemand, DemandVersions
from adloom.market.results.follower import ResultsFollower
from adloom.market.routing import AUCTIONEER, make_auctioneer_address
from adloom.market.site_store import load_sites
from adloom.market.store import MarketTables
from adloom.pages.follow.page_table import PageEntry
from adloom.resource.changes import read_version
from adloom.runtime.actors.actor import Address, find_shard
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.postgres import Connection, Pool, raise_if_away
from adloom.runtime.valkey import Valkey

REFRESH_SECONDS: Final = 30.0
PAGES_MAX: Final = 500  # In one message; beyond, the auctioneer reads all of its pages.
# Of several refreshes: one may have come to nothing.
RECENT_VERSIONS: Final = """
    SELECT category, version FROM demand_versions WHERE changed_at > now() - interval '5 minutes'
"""
SELLING: Final = """
    SELECT site.public_id FROM sites AS site
     WHERE NOT site.is_suspended AND EXISTS (
           SELECT FROM placements WHERE site_id = site.id AND delivery = 'contextual' AND is_active
     )
"""


class SharedMarketTables(MarketTables):
    """What actors get before their first message, and which of them must run where a shard is."""

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        found = dict(await super().load_first_messages(addresses))
        if DIRECTORY in addresses:
            with raise_if_away("The catalog cannot be read"):
                async with self._pool.acquire() as connection:
                    found[DIRECTORY] = [*found[DIRECTORY], await _read_demand(connection)]
        return found

    async def list_woken(self, shards: Sequence[int]) -> list[Address]:
        """List the directory and the auctioneers of sites that sell, of some shards."""
        with raise_if_away("The sites cannot be read"):
            rows = await self._pool.fetch(SELLING)
        all_woken = [DIRECTORY, *(make_auctioneer_address(SiteId(row[0])) for row in rows)]
        wanted = frozenset(shards)
        return [address for address in all_woken if find_shard(address) in wanted]


class MarketRefresh:
    """What actors in memory read again from time to time."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        sites = [SiteId(UUID(address.key)) for address in addresses if address.kind == AUCTIONEER]
        found: dict[Address, Sequence[msgspec.Struct]] = {}
        with raise_if_away("The catalog cannot be read"):
            async with self._pool.acquire() as connection:
                if DIRECTORY in addresses:
                    found[DIRECTORY] = [await _read_demand(connection)]
                if sites:
                    rows = await connection.fetch(RECENT_VERSIONS)
                    versions = DemandVersions({row["category"]: row["version"] for row in rows})
                    configured = await load_sites(connection, sites)
                    found |= {
                        make_auctioneer_address(site_id): [message, versions]
                        for site_id, message in configured.items()
                    }
        return found


async def _read_demand(connection: Connection) -> AllDemand:
    changes = await load_all(connection)
    return AllDemand(changes.version, tuple(changes.bidding))


class SharedMarketFollower(MarketFollower):
    """Follows for the market's actors of all workers."""

    def __init__(self, pool: Pool, valkey: Valkey, sender: NatsSender) -> None:
        super().__init__(pool, valkey, sender)
        self._sender = sender

    def _is_all_due(self, now: float) -> bool:
        del now
        return False  # Actors read all of it themselves, every half minute.

    async def _read_changes(self, connection: Connection, now: float) -> MarketChanges:
        """Read what has changed; where that is not known, actors read all of it themselves."""
        del now
        if self._version is not None:
            changes = await load_changes(connection, since=self._version)
            if not changes.is_everything:
                return changes
            self._forget_pages()
        version = await read_version(connection)
        self._send_fresh(DIRECTORY)
        return MarketChanges(version=version)

    async def _send_changed_pages(self, site_id: SiteId, changed: Sequence[PageEntry] | None) -> None:
        if changed is None or len(changed) > PAGES_MAX:
            self._wake(site_id)
        else:
            await super()._send_changed_pages(site_id, changed)

    def _wake(self, site_id: SiteId) -> None:
        self._send_fresh(make_auctioneer_address(site_id))
        self._awake.add(site_id)

    def _send_fresh(self, address: Address) -> None:
        if not self._sender.tell(address, CheckClock(), is_fresh=True):
            raise UnavailableError("NATS takes no messages to actors of the market.")
        self.sent += 1


class SharedResultsFollower(ResultsFollower):
    """Follows results for rankers of all workers: those of others go on while another worker begins to lead."""

    def __init__(self, pool: Pool, valkey: Valkey, sender: NatsSender, clock: Clock) -> None:
        super().__init__(pool, valkey, sender, clock)
        self._sender = sender

    def _wake(self, address: Address) -> bool:
        return self._sender.tell(address, CheckClock(), is_fresh=True)
