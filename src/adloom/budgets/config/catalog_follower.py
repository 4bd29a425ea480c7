"""Tells campaigns and advertisers what has changed in the catalog.

A notice through Valkey brings a change within milliseconds; polling the catalog's version every second, or
twice a second while Valkey is away, finds lost ones. The last version is stored, so changes made while no worker ran
are sent at the next start. An actor without a state gets its configuration with its first message.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, cast

from adloom.budgets.config.catalog_store import BudgetCatalog
from adloom.budgets.config.entity_config import EntityConfigurer
from adloom.core.errors import UnavailableError
from adloom.resource.changes import NOTICE_CHANNEL
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.mailboxes import Host
from adloom.runtime.loops import PollLoop
from adloom.runtime.valkey import ANYTHING_AWAY, Subscription, Valkey

VERSION_KEY: Final = "adloom:brain:catalog_version"
POLL_SECONDS: Final = 1.0
POLL_SOON_SECONDS: Final = 0.5  # While no notices arrive.
PART_MAX: Final = 1_000  # Told at once; the next part waits until the host has had its turn.
FIRST: Final = Address("", "")


class CatalogFollower:
    """Follows the catalog for the entities of one host."""

    def __init__(
        self, valkey: Valkey, catalog: BudgetCatalog, introductions: EntityConfigurer, host: Host
    ) -> None:
        self._valkey = valkey
        self._catalog = catalog
        self._introductions = introductions
        self._host = host
        self._loop = PollLoop(
            self.poll, every_seconds=self._find_seconds, away=ANYTHING_AWAY, name="brains_catalog"
        )
        noticed = self._loop.noticed.set
        self._subscription = Subscription(
            valkey, NOTICE_CHANNEL, on_message=lambda _: noticed(), on_start=noticed
        )
        self._version: int | None = None
        # A plain counter, read by a collector.
        self.notified = 0

    async def run(self, stop: asyncio.Event) -> None:
        self._version = None
        await self._loop.run(stop, self._subscription)

    def _find_seconds(self) -> float:
        return POLL_SECONDS if self._subscription.is_listening else POLL_SOON_SECONDS

    async def poll(self) -> None:
        """Tell the actors concerned what has changed since the last poll."""
        since = self._version if self._version is not None else await self._read_remembered()
        version, changed = await self._catalog.load_changes(since)
        if changed is None:
            await self._notify_everyone()
        else:
            await self._notify_changed(changed)
        if version != since or self._version is None:
            await self._host.wait_until_sent()
            await self._valkey.set(VERSION_KEY, version)
        self._version = version

    async def _read_remembered(self) -> int:
        known = cast("bytes | None", await self._valkey.get(VERSION_KEY))
        return await self._catalog.load_version() if known is None else int(known)

    async def _notify_changed(self, changed: Sequence[Address]) -> None:
        for start in range(0, len(changed), PART_MAX):
            part = changed[start : start + PART_MAX]
            concerned = {*await self._catalog.filter_existing(part), *self._introductions.filter_recent(part)}
            await self._notify(sorted(concerned))

    async def _notify_everyone(self) -> None:
        last = FIRST
        while part := await self._catalog.list_existing(last, count_max=PART_MAX):
            await self._notify(part)
            last = part[-1]

    async def _notify(self, addresses: Sequence[Address]) -> None:
        if not addresses:
            return
        for address, message in (await self._introductions.load_configurations(addresses)).items():
            if not self._host.tell(address, message):
                raise UnavailableError("There is no room for what has changed.")
            self.notified += 1
        await asyncio.sleep(0)
