"""Readers: they ask for pages, look at offers soon, late or never, click, and report what they did more than once."""

import asyncio
from random import Random  # noqa: TID251 - for its type
from typing import Final

from adloom.core.clock import Clock
from adloom.core.ids import IdSource, RequestId
from adloom.delivery.shelves import Offer
from adloom.ledger.event import ChargedBy, Click, Impression, decoded, encoded
from adloom.ledger.projection import Record
from adloom.ledger.stream import BEGINNING
from adloom.simulation.budgets.catalog import MoneyCatalog
from adloom.simulation.budgets.faults import MoneyFaults
from adloom.simulation.budgets.laws import Given, MoneyLaws
from adloom.simulation.budgets.processes import SellingProcess
from adloom.simulation.ledger import LedgerServer
from adloom.simulation.tables import TablesServer

SOON_SECONDS_MEAN: Final = 0.5
CLICKED_FIRST: Final = 0.2  # How often a click is reported before its impression.


class Ledger:
    """The ledger, and the tables that are never behind it here: how they keep up is another simulation's matter."""

    def __init__(self, server: LedgerServer, tables: TablesServer) -> None:
        self._server = server
        self._tables = tables
        assert server.last_id == tables.cursor == BEGINNING

    def take(self, event: Impression | Click) -> None:
        """Take an event in, and fold it."""
        before = self._tables.cursor
        self._server.take(encoded(event))
        entry_id = self._server.last_id
        self._tables.fold([Record(entry_id, decoded(encoded(event)))], after=before, cursor=entry_id)


class MoneyReaders:
    """Everybody who looks at pages."""

    def __init__(  # noqa: PLR0913 - whom they meet
        self,
        ledger: Ledger,
        laws: MoneyLaws,
        catalog: MoneyCatalog,
        faults: MoneyFaults,
        *,
        clock: Clock,
        ids: IdSource,
        chance: Random,
        hold_seconds: int,
    ) -> None:
        self._ledger = ledger
        self._laws = laws
        self._catalog = catalog
        self._faults = faults
        self._clock = clock
        self._ids = ids
        self._chance = chance
        self._hold_seconds = hold_seconds
        self._campaigns = {one.key: one.id for one in catalog.campaigns.values()}
        self.views = 0
        self.empty = 0
        self.offers = 0

    def view(self, process: SellingProcess, looking: asyncio.TaskGroup) -> None:
        """Ask one process for a page, and look at it some time."""
        self.views += 1
        offers = process.offers()
        self.empty += not offers
        request_id = RequestId(self._ids.new())
        for slot, (offer, lease, second) in enumerate(offers):
            self._note(offer, (request_id, slot), lease, second, session=process.session)
            if not self._faults.strikes("offer never seen", self._faults.money.unseen):
                looking.create_task(self._look(offer, (request_id, slot), lease, second))

    def _note(
        self, offer: Offer, name: tuple[RequestId, int], lease: int, second: int, *, session: int
    ) -> None:
        one = offer.candidate
        given = Given(
            campaign_id=self._campaigns[one.campaign_key],
            lease=lease,
            is_leased=one.is_leased,
            amount=one.price.cost,
            at=self._clock.now(),
            session=session,
        )
        self.offers += 1
        self._faults.trace.note("offered", b"%d %d %d" % (one.campaign_key, lease, second))
        self._laws.offered((name[0].int, name[1]), given)

    async def _look(self, offer: Offer, name: tuple[RequestId, int], lease: int, second: int) -> None:
        """Look at an offer, click where that is what it is paid for, and say so, perhaps again."""
        faults, chance, by_click = (
            self._faults,
            self._chance,
            offer.candidate.price.charged_by is ChargedBy.CLICK,
        )
        kinds: list[type[Impression | Click]] = [Impression, Click] if by_click else [Impression]
        if chance.random() < CLICKED_FIRST:
            kinds.reverse()
        if faults.strikes("offer seen late", faults.money.seen_late):
            await asyncio.sleep(chance.uniform(0, 3 * self._hold_seconds))
        events = [self._event(kind, offer, name, lease, second) for kind in kinds]
        for event in events:
            await asyncio.sleep(chance.expovariate(1 / SOON_SECONDS_MEAN))
            if event is events[-1]:
                self._laws.confirmed.add((name[0].int, name[1]))
            self._ledger.take(event)
        if faults.strikes("report repeated", faults.rates.repeated):
            await asyncio.sleep(chance.expovariate(1))
            self._ledger.take(chance.choice(events))
        if faults.strikes("reported under another name", faults.rates.repeated):
            await asyncio.sleep(chance.expovariate(1))
            self._ledger.take(self._event(chance.choice(kinds), offer, name, lease, second))

    def _event(
        self,
        kind: type[Impression | Click],
        offer: Offer,
        name: tuple[RequestId, int],
        lease: int,
        second: int,
    ) -> Impression | Click:
        """Say what a genuine token says of an offer."""
        one, now = offer.candidate, self._clock.now()
        campaign_id = self._campaigns[one.campaign_key]
        return kind(
            correlation_id=str(self._ids.new()),
            banner_id=self._catalog.campaigns[campaign_id].banner_id,
            placement_id=self._catalog.placement_id,
            campaign_id=campaign_id,
            occurred_at=now,
            received_at=now,
            request_id=name[0],
            slot=name[1],
            offered_at=second,
            lease=lease,
            charge=one.price.cost,
            charged_by=one.price.charged_by,
        )
