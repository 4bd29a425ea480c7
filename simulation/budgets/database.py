"""The database of budget actors in memory: states with versions, the money ledger, sessions; with its faults.

It promises what a database promises: a transaction is whole or not at all, and what it says of a key is
so. All else may go wrong at either end of any await, and whoever asked may be dead by then.
"""

import asyncio
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.campaign.seen import Offer
from adloom.budgets.messages import DayTotal, MoneyRow
from adloom.core.errors import UnavailableError
from adloom.events.log.entry import BEGINNING
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.ports import FencedOutError, StateRejectedError, StateWrite, StoredState
from simulation.budgets.laws import BudgetLaws
from simulation.campaigns import SimulatedCampaigns
from simulation.faults import ON_ITS_WAY, Faults, Host, Outages
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
        for write in writes:
            stored = StoredState(write.was_version + 1, write.format, write.state, write.wake_at)
            self.states[write.address] = stored
            self.faults.trace.note(write.address.key, write.state)
        self.rows += rows
        self.offers.update(offers)
        for total in records:
            if isinstance(total, DayTotal):
                self.totals[total.kind, total.id, total.day] = total.spent
        self.laws.committed(writes, rows)

    def fence(self, writes: Sequence[StateWrite]) -> None:
        """Raise where somebody has written one of these states since."""
        for write in writes:
            known = self.states.get(write.address)
            if (0 if known is None else known.version) != write.was_version:
                self.faults.injected["fenced out"] += 1
                raise FencedOutError(f"{write.address.key} is somebody else's.")

    def refuse(self, offers: Sequence[Offer]) -> None:
        """Raise where an offer is in the money ledger already."""
        if len(set(offers)) < len(offers) or not self.offers.isdisjoint(offers):
            self.faults.injected["repeated charge refused"] += 1
            raise StateRejectedError("An offer is charged already.")

    def charged(self, offers: Sequence[Offer]) -> set[Offer]:
        """Tell which offers are in the money ledger."""
        return self.offers.intersection(offers)


class DatabaseCalls:
    """One process's way to the database; it may die at either end of a call."""

    def __init__(self, server: BudgetDatabase, host: Host) -> None:
        self.server = server
        self.host = host
        self._faults = server.faults

    async def begin(self, what: str) -> None:
        """Have a call arrive, or raise that it does not."""
        faults = self._faults
        await faults.travel()
        if faults.strikes(f"died before {what}", faults.rates.died):
            self.host.kill()
        self.server.outages.check(self.host)
        if faults.strikes(f"{what} refused", faults.rates.refused):
            raise UnavailableError("Refused.")

    async def end(self, what: str) -> None:
        """Have the answer arrive, or raise that it does not: what was asked for is done all the same."""
        faults = self._faults
        if faults.strikes(f"died after {what}", faults.rates.died):
            self.host.kill()
        if faults.strikes(f"{what} slow", faults.rates.hung):
            await asyncio.sleep(faults.chance.uniform(0, HANG_SECONDS))
        await faults.travel()
        self.server.outages.check(self.host)
        if faults.strikes(f"{what} unanswered", faults.rates.answer_lost):
            raise UnavailableError("The answer was lost.")

    async def commit(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        """Have a transaction done now, much later, or never; and hear of it, or not."""
        faults = self._faults

        def late() -> None:
            try:
                self.server.commit(writes, records)
            except (FencedOutError, StateRejectedError):
                faults.injected["late commit fenced out"] += 1

        was_alive = self.host.is_alive
        try:
            await self.begin("commit")
        except UnavailableError:
            # What a process sent before it was killed may still arrive.
            is_sent = was_alive and not self.host.is_alive and self.server.outages.is_up
            if is_sent and faults.chance.random() < ON_ITS_WAY:
                late()
            raise
        if faults.later("commit late", late):
            raise UnavailableError("It takes too long.")
        self.server.commit(writes, records)
        await self.end("commit")
