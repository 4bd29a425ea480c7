"""The projection `charges`: confirms each valid impression or click of a priced offer once.

It follows the event tables, which know what counted and with which marks. The token of an offer says
whether its first valid impression or its first valid click confirms it. A click is valid when its impression is there
too, whichever came first, so both look for it in the tables. Offers already in the money
ledger are left out. The rest goes to the campaigns, and the cursor moves when all have persisted it; if
anything fails before, the batch is repeated. Offers made since we started, and not confirmed by us, need no look-up in
the money ledger.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeAlias
from uuid import UUID

import msgspec
from rbloom import Bloom

from adloom.budgets.config.entity_config import CatalogAddresses
from adloom.budgets.confirms.offers import (
    Offer,
    SeenOffers,
    build_confirm,
    find_capped_impression,
    may_cost,
)
from adloom.budgets.confirms.store import ConfirmStore
from adloom.budgets.messages import ChargeKind, CheckClock, Confirm, Confirms, CountedImpressions
from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.events.followers.counted import CountedEntry, CountedLookup
from adloom.events.log.event import EVENTS
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.mailboxes import Host, MailboxFullError

CHARGES: Final = "charges"
# Campaigns gather charges for half a second before they write them, so a batch takes at least that long.
BATCH_MAX: Final = 20_000
CONFIRMS_MAX: Final = 50  # In one message: while a campaign handles it, all others wait.
MAILBOX_SECONDS: Final = 0.005  # Wait for room in a full mailbox.
MAILBOX_SECONDS_MAX: Final = 10.0
POLL_SECONDS: Final = 2.0  # Charges are kept within half a second, unless a clock was set back meanwhile.

ByOffer: TypeAlias = dict[Offer, tuple[UUID, Confirm]]
# Keyed by the integer of a campaign's id, which compares much faster.
ByCampaign: TypeAlias = dict[int, tuple[UUID, list[Confirm]]]


class NullHost:
    """Stands in where no budget actors run, so that the lag of charges can be read there too."""

    def tell(self, address: Address, message: object) -> bool:
        del address, message
        return False

    def send_durably(self, address: Address, message: object) -> asyncio.Future[None]:
        del message
        raise UnavailableError(f"No budget actors run here, so nothing can be sent to {address.key}.")

    async def wait_until_sent(self) -> None:
        """Return at once: nothing was sent."""


class ConfirmProjection:
    """Confirms offers to the campaigns of one host."""

    def __init__(  # noqa: PLR0913 - its ports
        self,
        store: ConfirmStore,
        lookup: CountedLookup,
        addresses: CatalogAddresses,
        host: Host,
        clock: Clock,
        *,
        term: Callable[[], int] = lambda: 1,
    ) -> None:
        self._store = store
        self._lookup = lookup
        self._addresses = addresses
        self._host = host
        self._clock = clock
        self._term = term
        self._memory: tuple[int, SeenOffers] | None = None
        # A plain counter, read by a collector: offers of which the money ledger was not asked.
        self.certainly_new = 0

    async def read_cursor(self) -> str:
        return await self._store.read_cursor()

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Confirm new offers, wait until that is persisted, and move the cursor."""
        self._get_memory()  # It begins with the first batch, also with one that costs nothing.
        costly = [record for record in records if may_cost(record.event)]
        result = BatchResult()
        if costly:
            if await self._store.read_cursor() != after:
                raise CursorMovedError
            counted = await self._lookup.find_counted(costly)
            await self._end_holds_of_caps(counted)
            result = await self._confirm(await self._find_confirms(counted))
        await self._store.move(after, cursor)
        return result

    async def _end_holds_of_caps(self, entries: Sequence[CountedEntry]) -> None:
        """Tell campaigns with impression caps which of their offers were seen."""
        together: dict[UUID, list[tuple[int, int, str]]] = {}
        for counted in entries:
            seen = find_capped_impression(counted)
            if seen is not None and isinstance(counted.event, EVENTS) and counted.event.campaign_id:
                together.setdefault(counted.event.campaign_id, []).append(seen)
        if together:
            addresses = await self._addresses.find(together)
            await self._make_durable(
                (addresses[one], CountedImpressions(tuple(its[start : start + CONFIRMS_MAX])))
                for one, its in together.items()
                if one in addresses
                for start in range(0, len(its), CONFIRMS_MAX)
            )

    async def _find_confirms(self, entries: Sequence[CountedEntry]) -> ByOffer:
        """Return what these entries confirm, each offer once."""
        found: ByOffer = {}
        by_click: ByOffer = {}
        click = ChargeKind.CLICK  # Looking up a member of an enumeration costs more than comparing it.
        for counted in entries:
            event = counted.event
            if not isinstance(event, EVENTS) or (campaign_id := event.campaign_id) is None:
                continue
            if (confirm := build_confirm(counted)) is not None:
                offers = by_click if confirm.kind is click else found
                offers.setdefault((confirm.request_id.int, confirm.slot), (campaign_id, confirm))
        if by_click:
            since = min(confirm.second for _, confirm in by_click.values())
            for offer, entry_id in (await self._store.find_clicked(by_click, since=since)).items():
                campaign_id, confirm = by_click[offer]
                found[offer] = campaign_id, msgspec.structs.replace(confirm, entry_id=entry_id)
        return found

    async def _confirm(self, confirms: ByOffer) -> BatchResult:
        charged = (
            await self._store.find_charged(asked)
            if (asked := self._find_maybe_seen(confirms))
            else set[Offer]()
        )
        new = {offer: one for offer, one in confirms.items() if offer not in charged} if charged else confirms
        together = _group_by_campaign(new.values())
        addresses = await self._addresses.find([campaign_id for campaign_id, _ in together.values()])
        known = [(addresses[one], its) for one, its in together.values() if one in addresses]
        # Before they are sent: from then on the ledger must be asked about them.
        self._get_memory().note(new, now=self._clock.now())
        await self._make_durable(_split_messages(known))
        counted = sum(len(its) for _, its in known)
        return BatchResult(counted=counted, repeated=len(charged), dropped=len(new) - counted)

    def _find_maybe_seen(self, confirms: ByOffer) -> set[Offer]:
        seconds = {offer: one.second for offer, (_, one) in confirms.items()}
        maybe = self._get_memory().find_maybe_seen(seconds, now=self._clock.now())
        self.certainly_new += len(confirms) - len(maybe)
        return maybe

    def _get_memory(self) -> SeenOffers:
        """Return the memory of this term: in another term another worker confirmed offers."""
        term = self._term()
        if self._memory is None or self._memory[0] != term:
            self._memory = term, SeenOffers(Bloom, now=self._clock.now())
        return self._memory[1]

    async def _make_durable(self, messages: Iterable[tuple[Address, Confirms | CountedImpressions]]) -> None:
        kept: list[tuple[asyncio.Future[None], Address]] = []
        try:
            for address, together in messages:
                try:
                    future = self._host.send_durably(address, together)
                except MailboxFullError:
                    future = await self._send_when_possible(address, together)
                kept.append((future, address))
        finally:
            # Wait for everything that was sent in any case, so that its result is known before it is sent again.
            await self._wait_for_all(kept)
        failures = [error for future, _ in kept if (error := future.exception()) is not None]
        if failures:
            raise UnavailableError(
                f"{len(failures)} of {len(kept)} groups of charges are not known to be kept: {failures[0]}"
            )

    async def _wait_for_all(self, kept: Sequence[tuple[asyncio.Future[None], Address]]) -> None:
        """Wait until all campaigns have persisted; ask slow ones to check the clock."""
        waiting = kept
        while waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    # One after the other: many finish at once, and a callback for each would take longer.
                    for future, _ in waiting:
                        if not future.done():
                            await asyncio.wait([future])
            waiting = [one for one in waiting if not one[0].done()]
            for address in sorted({address for _, address in waiting}):
                self._host.tell(address, CheckClock())

    async def _send_when_possible(
        self, address: Address, together: Confirms | CountedImpressions
    ) -> asyncio.Future[None]:
        seconds = 0.0
        while True:
            await asyncio.sleep(MAILBOX_SECONDS)
            seconds += MAILBOX_SECONDS
            try:
                return self._host.send_durably(address, together)
            except MailboxFullError:
                if seconds >= MAILBOX_SECONDS_MAX:
                    raise


def _group_by_campaign(confirms: Iterable[tuple[UUID, Confirm]]) -> ByCampaign:
    """One message for each campaign: one for each confirm took a fifth of the worker's time."""
    found: ByCampaign = {}
    for campaign_id, confirm in confirms:
        if (its := found.get(campaign_id.int)) is None:
            found[campaign_id.int] = campaign_id, [confirm]
        else:
            its[1].append(confirm)
    return found


def _split_messages(
    confirms: Iterable[tuple[Address, Sequence[Confirm]]],
) -> Iterator[tuple[Address, Confirms]]:
    for address, its in confirms:
        for start in range(0, len(its), CONFIRMS_MAX):
            yield address, Confirms(tuple(its[start : start + CONFIRMS_MAX]))
