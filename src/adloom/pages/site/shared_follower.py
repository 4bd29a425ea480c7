"""Follows pages and catalog for site actors that several workers run.

It knows neither which of them are in memory nor what they have read. So changes of pages are sent to all, and an actor
that has to read everything is loaded anew. What a site was last told about itself is in its stored state.
"""

from typing import Final

from adloom.core.errors import UnavailableError
from adloom.core.ids import SiteId
from adloom.pages.follow import store as pages_store
from adloom.pages.site import store
from adloom.pages.site.follower import ANSWER_SECONDS_MAX, SiteFollower, SiteReader
from adloom.pages.site.messages import ChangePages, CheckSite, ConfigureSite, site_address
from adloom.pages.site.step import SiteKind
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.postgres import Pool, unavailable_when_away
from adloom.runtime.valkey import Valkey

CHANGES_MAX: Final = 200  # In one message; beyond, the actor reads all of its pages.
STATES: Final = "SELECT state, format FROM brain_states WHERE kind = $1"


class SharedSiteFollower(SiteFollower):
    """Follows for the site actors of all workers."""

    def __init__(self, pool: Pool, valkey: Valkey, sender: NatsSender) -> None:
        # The reader only remembers here what sites were told.
        super().__init__(pool, valkey, SiteReader(pool), sender)
        self._sender = sender

    async def _tell_pages(self, site_id: SiteId, since: int | None) -> None:
        changes = None
        if since is not None:
            with unavailable_when_away("Pages cannot be read"):
                changes = await pages_store.read_changes(self._pool, site_id, since)
        if changes is None or len(changes) > CHANGES_MAX:
            await self._ask_fresh(site_id)
        else:
            await self._ask(site_id, ChangePages(tuple(changes)))

    async def _ask_fresh(self, site_id: SiteId) -> None:
        try:
            await self._sender.ask(
                site_address(site_id), CheckSite(), seconds_max=ANSWER_SECONDS_MAX, is_fresh=True
            )
        except TimeoutError as error:
            raise UnavailableError("The site actor does not answer.") from error
        self.changes += 1

    async def _follow_catalog(self) -> None:
        if await store.read_catalog_version(self._pool) != self._catalog_version:
            self._reader.configured = await self._load_configured()
        await super()._follow_catalog()

    async def _load_configured(self) -> dict[SiteId, ConfigureSite]:
        """Load what each site was last told about itself."""
        kind = SiteKind()
        with unavailable_when_away("Sites cannot be read"):
            rows = await self._pool.fetch(STATES, kind.name)
        states = [kind.decode(row["state"], format_number=row["format"]) for row in rows]
        return {state.site_id: ConfigureSite(state.config_version, state.config) for state in states}
