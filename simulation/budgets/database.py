"""The database of budget actors in memory, with its faults, and the stores over it, in place of those that speak SQL.

Transactions are atomic and keys unique, as in a database. Anything else may go wrong at either end of any
await, and the caller may be dead by then.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.bid_model import BidRow
from adloom.budgets.config.catalog_store import BudgetCatalog, CatalogRows
from adloom.budgets.config.count_follower import CampaignCount, CountReader
from adloom.budgets.confirms.offers import Offer
from adloom.budgets.confirms.store import ConfirmStore
from adloom.budgets.messages import DayTotal, MoneyRow, WaitingOffer
from adloom.budgets.transport.session_store import SessionStore, StoredSessions
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.events.followers.counted import CountedEntry
from adloom.events.log.event import BEGINNING, parse_entry_id
from adloom.events.ports import CursorMovedError, DecodedEntry
from adloom.events.tables.apply_batch import get_offer
from adloom.runtime.actors.actor import Address, FencedOutError, StateRejectedError, StateWrite, StoredState
from simulation.budgets.caps import count
from simulation.budgets.laws import BudgetLaws
from simulation.campaigns import SimulatedCampaigns
from simulation.faults import Connection, Faults, Host, Outages
from simulation.tables import TablesServer

HANG_SECONDS: Final = 8.0


class BudgetDatabase:
    """Tables that outlive the workers; the laws look at every commit."""

    def __init__(
        self, faults: Faults, catalog: SimulatedCampaigns, tables: TablesServer, laws: BudgetLaws
    ) -> None:
        self.faults = faults
        self.laws = laws
        self.outages = Outages("database", faults)
        self.catalog = catalog
        self.tables = tables
        self.states: dict[Address, StoredState] = {}
        self.rows: list[MoneyRow] = []
        self.multiplied = 0  # Decisions about bids that are not made in full.
        self.offers: set[Offer] = set()  # The unique key of the rows.
        self.totals: dict[tuple[str, UUID, date], int] = {}
        self.sessions: dict[int, datetime | None] = {}  # When each was over.
        self.leases: set[tuple[int, str]] = set()
        self.charges_cursor = BEGINNING

    def commit(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        """Do what the transaction does: all of it at once, or nothing."""
        self.fence(writes)
        rows = [row for row in records if isinstance(row, MoneyRow)]
        offers = [
            (row.request_id.int, row.slot)
            for row in rows
            if row.request_id is not None and row.slot is not None
        ]
        self.refuse(offers)
        self.refuse({(one.request_id.int, one.slot) for one in records if isinstance(one, WaitingOffer)})
        for write in writes:
            stored = StoredState(write.was_version + 1, write.format, write.state, write.wake_at)
            self.states[write.address] = stored
            self.faults.trace.note(write.address.key, write.state)
        self.rows += rows
        self.multiplied += sum(isinstance(one, BidRow) and one.multiplier < 1 for one in records)
        self.offers.update(offers)
        for total in records:
            if isinstance(total, DayTotal):
                self.totals[total.kind, total.id, total.day] = total.spent
        self.laws.check_commit(writes, rows)

    def fence(self, writes: Sequence[StateWrite]) -> None:
        """Raise if one of these states was written since."""
        for write in writes:
            known = self.states.get(write.address)
            if (0 if known is None else known.version) != write.was_version:
                self.faults.injected["fenced out"] += 1
                raise FencedOutError(f"{write.address.key} was written since.")

    def refuse(self, offers: Collection[Offer]) -> None:
        """Raise where an offer is in the money ledger already."""
        if len(set(offers)) < len(offers) or not self.offers.isdisjoint(offers):
            self.faults.injected["repeated charge refused"] += 1
            raise StateRejectedError("An offer is charged already.")

    def find_charged(self, offers: Sequence[Offer]) -> set[Offer]:
        return self.offers.intersection(offers)


class _DatabaseConnection(Connection):
    """One process's way to the database."""

    def __init__(self, server: BudgetDatabase, host: Host) -> None:
        super().__init__(server.faults, server.outages, host, hang_seconds_max=HANG_SECONDS)
        self._server = server


class SimulatedStates(_DatabaseConnection):
    """States, and the records with them."""

    async def load(self, addresses: Sequence[Address]) -> Mapping[Address, StoredState]:
        async with self.call("load"):
            states = self._server.states
            return {address: states[address] for address in addresses if address in states}

    async def list_timers(self, *, until: datetime | None = None) -> Sequence[tuple[Address, datetime]]:
        await self.begin("timers")
        timers = [(address, one.wake_at) for address, one in self._server.states.items() if one.wake_at]
        return [(address, at) for address, at in timers if until is None or at <= until]

    async def commit(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        await self.transact(
            "commit", lambda: self._server.commit(writes, records), FencedOutError, StateRejectedError
        )


class SimulatedSessions(_DatabaseConnection, SessionStore):
    """Sessions, and where they have leases."""

    async def load(self) -> StoredSessions:
        await self.begin("sessions")
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
        async with self.call("note"):
            for session in sessions:
                self._server.sessions.setdefault(session, None)
            new = set(leases) - self._server.leases
            self._server.leases |= new
            return len(new)

    async def record_end(self, session: int, process: str, *, now: datetime) -> None:
        del process
        async with self.call("end"):
            self._server.sessions[session] = now
            self._server.laws.sessions_over.add(session)

    async def list_leases(self, session: int, *, count_max: int) -> list[str]:
        await self.begin("leases")
        return sorted(key for one, key in self._server.leases if one == session)[:count_max]

    async def delete_leases(self, session: int, keys: Sequence[str]) -> None:
        async with self.call("forget leases"):
            self._server.leases -= {(session, key) for key in keys}


class SimulatedCatalog(_DatabaseConnection, BudgetCatalog):
    """The catalog, as budget actors see it."""

    async def load_rows(
        self, campaign_ids: Sequence[CampaignId], advertiser_ids: Sequence[AdvertiserId]
    ) -> CatalogRows:
        async with self.call("catalog"):
            catalog = self._server.catalog
            return CatalogRows(
                version=catalog.version,
                campaigns=[catalog.build_row(one) for one in campaign_ids],
                advertisers=[catalog.payers[one] for one in advertiser_ids],
            )

    async def load_payers(self, campaign_ids: Sequence[UUID]) -> dict[UUID, AdvertiserId | None]:
        await self.begin("payers")
        return {one: self._server.catalog.campaigns[CampaignId(one)].payer_id for one in campaign_ids}

    async def load_version(self) -> int:
        await self.begin("version")
        return self._server.catalog.version

    async def load_changes(self, since: int) -> tuple[int, list[Address] | None]:
        async with self.call("changed"):
            catalog = self._server.catalog
            found = sorted({address for version, address in catalog.changes if version > since})
            return catalog.version, None if catalog.version < since else found

    async def filter_existing(self, addresses: Sequence[Address]) -> list[Address]:
        await self.begin("kept")
        return [address for address in addresses if address in self._server.states]

    async def list_existing(self, after: Address, *, count_max: int) -> list[Address]:
        await self.begin("everyone")
        return sorted(address for address in self._server.states if address > after)[:count_max]


class SimulatedCounts(_DatabaseConnection, CountReader):
    """What the event tables have counted of campaigns with caps."""

    async def read(self) -> tuple[Sequence[CampaignCount], str]:
        async with self.call("counts"):
            catalog, tables = self._server.catalog, self._server.tables
            capped = [one for one in catalog.campaigns.values() if one.is_capped and one.is_active]
            return [
                CampaignCount(one.id, one.payer_id, count(tables, one.key)) for one in capped
            ], tables.cursor


class SimulatedCharges(_DatabaseConnection, ConfirmStore):
    """How far charges are, which offers are charged, and what the event tables made of entries.

    The tables are always ahead of the charges here.
    """

    async def read_cursor(self) -> str:
        await self.begin("cursor")
        return self._server.charges_cursor

    async def move(self, after: str, cursor: str) -> None:
        async with self.call("move"):
            if self._server.charges_cursor != after:
                raise CursorMovedError
            self._server.charges_cursor = cursor

    async def find_charged(self, offers: Collection[Offer]) -> set[Offer]:
        async with self.call("charged"):
            return self._server.find_charged(list(offers))

    async def find_clicked(self, offers: Collection[Offer], *, since: int) -> dict[Offer, str]:
        del since
        await self.begin("clicked")
        clicked: dict[Offer, str] = {}
        seen: dict[Offer, str] = {}
        for key, row in self._server.tables.rows.items():  # In the order of the log.
            offer, is_click = get_offer(row.event), key.kind == "click"
            if offer is not None and offer in offers and (row.is_valid or not is_click):
                (clicked if is_click else seen).setdefault(offer, row.entry_id)
        return {
            offer: max(entry_id, seen.get(offer, BEGINNING), key=parse_entry_id)
            for offer, entry_id in clicked.items()
        }

    async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        await self.begin("counted")
        return self._server.tables.find_counted(records)
