"""Follows catalog and pages for actors of the market that several workers run.

It knows neither which of them are in memory nor what they have read. So when it begins, all of them read anew; after
that it tells changes.
"""

from collections.abc import Sequence
from typing import Final

from adloom.budgets.campaign.demand import DIRECTORY
from adloom.budgets.messages import CheckClock
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.ids import SiteId
from adloom.market.demand_store import MarketChanges, load_changes
from adloom.market.follower import MarketFollower
from adloom.market.results.follower import ResultsFollower
from adloom.market.routing import make_auctioneer_address
from adloom.pages.follow.page_table import PageEntry
from adloom.resource.changes import read_version
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.postgres import Connection, Pool
from adloom.runtime.valkey import Valkey

PAGES_MAX: Final = 500  # In one message; beyond, the auctioneer reads all of its pages.


class SharedMarketFollower(MarketFollower):
    """Follows for the market's actors of all workers."""

    def __init__(self, pool: Pool, valkey: Valkey, sender: NatsSender) -> None:
        super().__init__(pool, valkey, sender)
        self._sender = sender

    def _is_all_due(self, now: float) -> bool:
        del now
        return False  # Actors read all of it themselves, once a minute.

    async def _read_changes(self, connection: Connection, now: float) -> MarketChanges:
        """Read what has changed; where that is not known, actors read all of it themselves."""
        del now
        if self._version is not None:
            changes = await load_changes(connection, since=self._version)
            if not changes.is_everything:
                return changes
            self._forget_pages()
        version = await read_version(connection)
        self._tell_fresh(DIRECTORY)
        return MarketChanges(version=version)

    async def _tell_changed_pages(self, site_id: SiteId, changed: Sequence[PageEntry] | None) -> None:
        if changed is None or len(changed) > PAGES_MAX:
            self._wake(site_id)
        else:
            await super()._tell_changed_pages(site_id, changed)

    def _wake(self, site_id: SiteId) -> None:
        self._tell_fresh(make_auctioneer_address(site_id))
        self._awake.add(site_id)

    def _tell_fresh(self, address: Address) -> None:
        if not self._sender.tell(address, CheckClock(), is_fresh=True):
            raise UnavailableError("NATS takes no messages to actors of the market.")
        self.told += 1


class SharedResultsFollower(ResultsFollower):
    """Follows results for rankers of all workers: those of others go on while another worker begins to lead."""

    def __init__(self, pool: Pool, valkey: Valkey, sender: NatsSender, clock: Clock) -> None:
        super().__init__(pool, valkey, sender, clock)
        self._sender = sender

    def _wake(self, address: Address) -> bool:
        return self._sender.tell(address, CheckClock(), is_fresh=True)
