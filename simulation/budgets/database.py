"""The database of budget actors in memory: states with versions, the money ledger, sessions; with its faults.

Transactions are atomic and keys unique, as in a database. Anything else may go wrong at either end of any
await, and the caller may be dead by then.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.charges.offers import Offer
from adloom.budgets.messages import DayTotal, MoneyRow
from adloom.events.log.event import BEGINNING
from adloom.runtime.actors.actor import Address, FencedOutError, StateRejectedError, StateWrite, StoredState
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
        """Raise if one of these states was written since."""
        for write in writes:
            known = self.states.get(write.address)
            if (0 if known is None else known.version) != write.was_version:
                self.faults.injected["fenced out"] += 1
                raise FencedOutError(f"{write.address.key} was written since.")

    def refuse(self, offers: Sequence[Offer]) -> None:
        """Raise where an offer is in the money ledger already."""
        if len(set(offers)) < len(offers) or not self.offers.isdisjoint(offers):
            self.faults.injected["repeated charge refused"] += 1
            raise StateRejectedError("An offer is charged already.")

    def charged(self, offers: Sequence[Offer]) -> set[Offer]:
        return self.offers.intersection(offers)


def connect(server: BudgetDatabase, host: Host) -> Connection:
    return Connection(server.faults, server.outages, host, hang_seconds_max=HANG_SECONDS)
