"""The stores of budget actors over failing connections, in place of those that speak SQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from adloom.budgets.charges.offers import Offer
from adloom.budgets.charges.store import ChargeStore
from adloom.budgets.config.catalog_store import BudgetCatalog, CatalogRows
from adloom.budgets.transport.session_store import SessionStore, StoredSessions
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.events.followers.counted import CountedEntry
from adloom.events.ports import CursorMovedError, DecodedEntry
from adloom.runtime.actors.actor import Address, FencedOutError, StateRejectedError, StateWrite, StoredState
from simulation.budgets.database import BudgetDatabase, connect
from simulation.faults import Host


class SimulatedStates:
    """States, and the records with them."""

    def __init__(self, server: BudgetDatabase, host: Host) -> None:
        self._server = server
        self._calls = connect(server, host)

    async def load(self, addresses: Sequence[Address]) -> Mapping[Address, StoredState]:
        await self._calls.begin("load")
        states = self._server.states
        found = {address: states[address] for address in addresses if address in states}
        await self._calls.end("load")
        return found

    async def timers(self, *, until: datetime | None = None) -> Sequence[tuple[Address, datetime]]:
        await self._calls.begin("timers")
        timers = [(address, one.wake_at) for address, one in self._server.states.items() if one.wake_at]
        return [(address, at) for address, at in timers if until is None or at <= until]

    async def commit(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        await self._calls.commit(
            "commit", lambda: self._server.commit(writes, records), FencedOutError, StateRejectedError
        )


class SimulatedSessions(SessionStore):
    """Sessions, and where they have leases."""

    def __init__(self, server: BudgetDatabase, host: Host) -> None:  # pyright: ignore[reportMissingSuperCall] - there is no pool
        self._server = server
        self._calls = connect(server, host)

    async def load(self) -> StoredSessions:
        await self._calls.begin("sessions")
        sessions, leases = self._server.sessions, self._server.leases
        over = [session for session, ended_at in sessions.items() if ended_at is not None]
        with_leases = {session for session, _ in leases}
        return StoredSessions(
            open=[session for session, ended_at in sessions.items() if ended_at is None],
            over=over,
            unsettled=[session for session in over if session in with_leases],
            leases=len(leases),
        )

    async def record(
        self, sessions: Mapping[int, str], leases: Sequence[tuple[int, str]], *, now: datetime
    ) -> int:
        del now
        await self._calls.begin("note")
        for session in sessions:
            self._server.sessions.setdefault(session, None)
        new = set(leases) - self._server.leases
        self._server.leases |= new
        await self._calls.end("note")
        return len(new)

    async def record_end(self, session: int, process: str, *, now: datetime) -> None:
        del process
        await self._calls.begin("end")
        self._server.sessions[session] = now
        self._server.laws.sessions_over.add(session)
        await self._calls.end("end")

    async def list_leases(self, session: int, *, count_max: int) -> list[str]:
        await self._calls.begin("leases")
        return sorted(key for one, key in self._server.leases if one == session)[:count_max]

    async def delete_leases(self, session: int, keys: Sequence[str]) -> None:
        await self._calls.begin("forget leases")
        self._server.leases -= {(session, key) for key in keys}
        await self._calls.end("forget leases")


class SimulatedCatalog(BudgetCatalog):
    """The catalog, as budget actors see it."""

    def __init__(self, server: BudgetDatabase, host: Host) -> None:  # pyright: ignore[reportMissingSuperCall] - there is no pool
        self._server = server
        self._catalog = server.catalog
        self._calls = connect(server, host)

    async def load_rows(
        self, campaign_ids: Sequence[CampaignId], advertiser_ids: Sequence[AdvertiserId]
    ) -> CatalogRows:
        await self._calls.begin("catalog")
        found = CatalogRows(
            version=self._catalog.version,
            campaigns=[self._catalog.campaign_row(one) for one in campaign_ids],
            advertisers=[self._catalog.payer_row(one) for one in advertiser_ids],
        )
        await self._calls.end("catalog")
        return found

    async def load_payers(self, campaign_ids: Sequence[UUID]) -> dict[UUID, AdvertiserId | None]:
        await self._calls.begin("payers")
        return {one: self._catalog.campaigns[CampaignId(one)].payer_id for one in campaign_ids}

    async def load_version(self) -> int:
        await self._calls.begin("version")
        return self._catalog.version

    async def load_changes(self, since: int) -> tuple[int, list[Address] | None]:
        await self._calls.begin("changed")
        found = sorted({address for version, address in self._catalog.changes if version > since})
        version = self._catalog.version
        await self._calls.end("changed")
        return version, None if version < since else found

    async def filter_existing(self, addresses: Sequence[Address]) -> list[Address]:
        await self._calls.begin("kept")
        return [address for address in addresses if address in self._server.states]

    async def list_existing(self, after: Address, *, count_max: int) -> list[Address]:
        await self._calls.begin("everyone")
        return sorted(address for address in self._server.states if address > after)[:count_max]


class SimulatedCharges(ChargeStore):
    """How far charges are, and which offers are charged."""

    def __init__(self, server: BudgetDatabase, host: Host) -> None:  # pyright: ignore[reportMissingSuperCall] - there is no pool
        self._server = server
        self._calls = connect(server, host)

    async def read_cursor(self) -> str:
        await self._calls.begin("cursor")
        return self._server.charges_cursor

    async def move(self, after: str, cursor: str) -> None:
        await self._calls.begin("move")
        if self._server.charges_cursor != after:
            raise CursorMovedError
        self._server.charges_cursor = cursor
        await self._calls.end("move")

    async def find_charged(self, offers: Collection[Offer]) -> set[Offer]:
        await self._calls.begin("charged")
        found = self._server.charged(list(offers))
        await self._calls.end("charged")
        return found

    async def find_clicked(self, offers: Collection[Offer], *, since: int) -> set[Offer]:
        del since
        await self._calls.begin("clicked")
        clicks = (
            row for key, row in self._server.tables.rows.items() if key.kind == "click" and row.is_valid
        )
        return {
            offer
            for row in clicks
            if row.request_id is not None
            and row.slot is not None
            and (offer := (row.request_id.int, row.slot)) in offers
        }


class SimulatedCounts:
    """What the event tables made of entries: they are always ahead of the charges here."""

    def __init__(self, server: BudgetDatabase, host: Host) -> None:
        self._server = server
        self._calls = connect(server, host)

    async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        await self._calls.begin("counted")
        return self._server.tables.find_counted(records)
