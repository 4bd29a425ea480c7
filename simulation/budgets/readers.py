"""Visitors of the budget world: they see offers soon, late or never, click, and report more than once."""

import asyncio
from random import Random  # noqa: TID251 - for its type
from typing import Final

from adloom.core.clock import Clock
from adloom.core.ids import IdSource, RequestId
from adloom.events.log.event import ChargedBy, Click, Impression, decode_event, encode_event
from adloom.events.ports import DecodedEntry
from simulation.budgets.laws import BudgetLaws, Given
from simulation.budgets.processes import SellingProcess, Sold
from simulation.campaigns import SimulatedCampaigns
from simulation.faults import Faults
from simulation.tables import TablesServer
from simulation.valkey import EventLogServer

SOON_SECONDS_MEAN: Final = 0.5
CLICKED_FIRST: Final = 0.2  # How often a click is reported before its impression.


class BudgetVisitors:
    """All visitors of the run."""

    def __init__(  # noqa: PLR0913 - what they meet
        self,
        log: EventLogServer,
        tables: TablesServer,
        laws: BudgetLaws,
        catalog: SimulatedCampaigns,
        faults: Faults,
        *,
        clock: Clock,
        ids: IdSource,
        chance: Random,
        hold_seconds: int,
    ) -> None:
        self._log = log
        self._tables = tables
        self._laws = laws
        self._catalog = catalog
        self._faults = faults
        self._clock = clock
        self._ids = ids
        self._chance = chance
        self._hold_seconds = hold_seconds
        self._campaigns = {one.key: one.id for one in catalog.campaigns.values()}
        self.views = 0
        self.offers = 0
        self.auctions = 0  # Those that were won.

    def view(
        self, process: SellingProcess, looking: asyncio.TaskGroup, *, is_auctioned: bool = False
    ) -> None:
        self.views += 1
        sold = process.auctioned() if is_auctioned else process.offers()
        request_id = RequestId(self._ids.new())
        for slot, one in enumerate(sold):
            self._note(one, (request_id, slot), session=process.session)
            if not self._faults.strikes("offer never seen", self._faults.rates.unseen):
                looking.create_task(self._look(one, (request_id, slot)))

    def _note(self, sold: Sold, name: tuple[RequestId, int], *, session: int) -> None:
        one = sold.candidate
        given = Given(
            campaign_id=self._campaigns[one.campaign_key],
            lease=sold.lease,
            is_leased=one.is_leased,
            amount=sold.cost,
            at=self._clock.now(),
            session=session,
        )
        self.offers += 1
        if sold.win is not None:
            self.auctions += 1
            self._laws.auctioned(sold.win, sold.cost, sold.rivals)
        self._faults.trace.note("offered", b"%d %d %d" % (one.campaign_key, sold.lease, sold.second))
        self._laws.offered((name[0].int, name[1]), given)

    async def _look(self, sold: Sold, name: tuple[RequestId, int]) -> None:
        """See an offer, click if that is what it is paid for, and report it, perhaps twice."""
        faults, chance = self._faults, self._chance
        by_click = sold.candidate.price.charged_by is ChargedBy.CLICK
        kinds: list[type[Impression | Click]] = [Impression, Click] if by_click else [Impression]
        if chance.random() < CLICKED_FIRST:
            kinds.reverse()
        if faults.strikes("offer seen late", faults.rates.seen_late):
            await asyncio.sleep(chance.uniform(0, 3 * self._hold_seconds))
        events = [self._event(kind, sold, name) for kind in kinds]
        for event in events:
            await asyncio.sleep(chance.expovariate(1 / SOON_SECONDS_MEAN))
            if event is events[-1]:
                self._laws.confirmed.add((name[0].int, name[1]))
            self._report(event)
        if faults.strikes("report repeated", faults.rates.repeated):
            await asyncio.sleep(chance.expovariate(1))
            self._report(chance.choice(events))
        if faults.strikes("reported under another name", faults.rates.repeated):
            await asyncio.sleep(chance.expovariate(1))
            self._report(self._event(chance.choice(kinds), sold, name))

    def _report(self, event: Impression | Click) -> None:
        """Append an event, and apply it at once: how tables keep up is the matter of the other world."""
        before, data = self._tables.cursor, encode_event(event)
        self._log.take(data)
        entry = DecodedEntry(self._log.last_id, decode_event(data))
        self._tables.fold([entry], after=before, cursor=self._log.last_id)

    def _event(
        self, kind: type[Impression | Click], sold: Sold, name: tuple[RequestId, int]
    ) -> Impression | Click:
        """Report what a genuine token says of an offer."""
        one, now, catalog = sold.candidate, self._clock.now(), self._catalog
        campaign_id = self._campaigns[one.campaign_key]
        return kind(
            correlation_id=str(self._ids.new()),
            banner_id=catalog.campaigns[campaign_id].banner_id,
            placement_id=catalog.placement_id if sold.win is None else catalog.auction_placement_id,
            campaign_id=campaign_id,
            occurred_at=now,
            received_at=now,
            request_id=name[0],
            slot=name[1],
            offered_at=sold.second,
            lease=sold.lease,
            charge=sold.cost,
            charged_by=one.price.charged_by,
        )
