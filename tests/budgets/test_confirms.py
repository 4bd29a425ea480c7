"""Charges: every valid first impression, or click, of an offer with a price is charged exactly once."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from adloom.budgets.config.catalog_store import BudgetCatalog
from adloom.budgets.config.entity_config import CatalogAddresses
from adloom.budgets.confirms.projection import CHARGES, ConfirmProjection
from adloom.budgets.confirms.store import ConfirmStore
from adloom.budgets.messages import Confirms
from adloom.core.clock import Clock, ManualClock, SystemClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import RequestId
from adloom.core.money import Micros
from adloom.events.log.event import ChargedBy, Click, Impression, Mark
from adloom.events.ports import BatchResult, CursorMovedError
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.mailboxes import MailboxFullError
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.budgets.worker_stage import Stage, insert_campaign
from tests.events.builders import CAMPAIGN, UNKNOWN_ID, a_click, an_impression
from tests.events.catalog import insert_banner, insert_placement
from tests.events.followed import Followed
from tests.support.eventually import measure_fastest

COST = Micros(5_000)


def now() -> datetime:
    return datetime.now(UTC)


def offer(number: int, **fields: Any) -> dict[str, Any]:
    """Return the fields of an offer's token; by default its impression is charged."""
    return {
        "request_id": RequestId(UUID(int=number)),
        "slot": 0,
        "charge": COST,
        "offered_at": int(now().timestamp()),
        "occurred_at": now(),
        "received_at": now(),
        **fields,
    }


def seen(number: int, name: str = "", **fields: Any) -> Impression:
    return an_impression(name or f"i{number}", **offer(number, **fields))


def clicked(number: int, name: str = "", **fields: Any) -> Click:
    return a_click(name or f"c{number}", **offer(number, **fields))


class ChargedEvents(Followed):
    """The event log, its tables, and the budget actors that charge."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        super().__init__(pool, valkey)
        self.stage = Stage(pool, valkey)
        self.confirms = self.stage.budget_actors.confirms

    async def charge(self) -> BatchResult:
        return await self.apply(self.confirms)

    async def entries(self) -> list[tuple[int, str, str, int]]:
        rows = await self.pool.fetch(
            "SELECT request_id, kind, confirmed_by, amount_micros FROM money_entries "
            "WHERE kind <> 'release' ORDER BY request_id"
        )
        return [(row["request_id"].int, *tuple(row)[1:]) for row in rows]

    async def charged(self) -> list[int]:
        return [number for number, kind, _, _ in await self.entries() if kind == "charge"]


@pytest.fixture
async def events(pool: Pool, valkey: Valkey) -> AsyncGenerator[ChargedEvents]:
    await insert_placement(pool)
    await insert_banner(pool)
    await insert_campaign(pool, CAMPAIGN, daily=10_000)
    events = ChargedEvents(pool, valkey)
    async with events.stage.running():
        yield events


# --- what is charged


async def test_the_impression_of_an_offer_with_a_price_is_charged(events: ChargedEvents) -> None:
    await events.record(seen(1), seen(2, charge=Micros(0)), an_impression("without a token"))

    result = await events.charge()

    assert await events.entries() == [(1, "charge", "impression", COST)]
    assert result == BatchResult(counted=1)
    assert await events.pool.fetchval("SELECT spent_micros FROM spend_days") == COST
    state = await events.stage.state(CAMPAIGN)
    assert state is not None
    assert (state.spent_today, state.spent_total) == (COST, COST)


async def test_a_cpc_offer_is_charged_by_its_click_and_not_by_its_impression(events: ChargedEvents) -> None:
    by_click = {"charged_by": ChargedBy.CLICK}
    await events.record(seen(1, **by_click), seen(2, **by_click), clicked(2, **by_click))

    await events.charge()

    assert await events.entries() == [(2, "charge", "click", COST)]


async def test_the_click_on_a_cpm_offer_is_not_charged(events: ChargedEvents) -> None:
    await events.record(seen(1), clicked(1))

    await events.charge()

    assert await events.entries() == [(1, "charge", "impression", COST)]


@pytest.mark.parametrize("mark", [Mark.CRAWLER, Mark.PREFETCH, Mark.ADDRESS_FLOOD, Mark.TOKEN_EXPIRED])
async def test_an_invalid_event_is_not_charged(events: ChargedEvents, mark: Mark) -> None:
    by_click = {"charged_by": ChargedBy.CLICK}
    await events.record(
        seen(1, marks=(mark,)), seen(2, **by_click), clicked(2, marks=(mark,), **by_click), seen(3)
    )

    await events.charge()

    assert await events.charged() == [3]


async def test_an_event_with_a_harmless_mark_is_charged(events: ChargedEvents) -> None:
    await events.record(seen(1, marks=(Mark.OCCURRED_AT_REPLACED,)))

    await events.charge()

    assert await events.charged() == [1]


async def test_an_offer_that_is_reported_several_times_is_charged_once(events: ChargedEvents) -> None:
    await events.record(seen(1, "a"), seen(1, "b"), seen(1, "a"))
    await events.charge()
    await events.record(seen(1, "c"))
    await events.charge()

    assert await events.entries() == [(1, "charge", "impression", COST)]


async def test_a_click_before_its_impression_is_charged_when_the_impression_comes(
    events: ChargedEvents,
) -> None:
    by_click = {"charged_by": ChargedBy.CLICK}
    await events.record(clicked(1, **by_click))
    await events.charge()
    assert await events.charged() == []

    await events.record(seen(1, **by_click))
    await events.charge()

    assert await events.entries() == [(1, "charge", "click", COST)]


async def test_a_click_and_its_late_impression_in_one_batch_are_one_charge(events: ChargedEvents) -> None:
    by_click = {"charged_by": ChargedBy.CLICK}
    await events.record(clicked(1, **by_click))
    await events.record(seen(1, **by_click))

    assert await events.charge() == BatchResult(counted=1)
    assert await events.charged() == [1]


@pytest.mark.parametrize("order", [(seen, clicked), (clicked, seen)])
async def test_a_click_counts_with_the_later_of_its_two_entries_also_if_charges_are_behind(
    events: ChargedEvents, order: tuple[Callable[..., Impression | Click], ...]
) -> None:
    """A click cap compares that entry with the last one that its counts include."""
    host = FailingHost()
    host.fails = False
    for make in order:
        await events.record(make(1, charged_by=ChargedBy.CLICK))
    first, last = await events.records()

    await make_projection(events, host).commit([first], after="0-0", cursor=first.entry_id)

    assert [one.entry_id for together in host.taken for one in together.confirms] == [last.entry_id]


async def test_an_invalid_click_is_not_charged_after_a_late_impression(events: ChargedEvents) -> None:
    by_click = {"charged_by": ChargedBy.CLICK}
    await events.record(clicked(1, marks=(Mark.CRAWLER,), **by_click))
    await events.record(seen(1, **by_click))

    await events.charge()

    assert await events.charged() == []


async def test_an_offer_of_a_campaign_that_is_not_in_the_catalog_is_dropped_and_counted(
    events: ChargedEvents,
) -> None:
    await events.record(seen(1, campaign_id=UNKNOWN_ID), seen(2))

    assert await events.charge() == BatchResult(counted=1, dropped=1)
    assert await events.charged() == [2]


async def test_an_offer_beyond_the_budget_is_in_the_money_ledger_as_unbilled(events: ChargedEvents) -> None:
    await events.pool.execute("UPDATE campaigns SET budget_daily_paisa = 1")  # 10,000 micros: two offers.
    await events.record(*(seen(number) for number in range(1, 5)))

    await events.charge()

    kinds = sorted(kind for _, kind, _, _ in await events.entries())
    assert kinds == ["charge", "charge", "unbilled", "unbilled"]


# --- exactly once


async def test_a_repeated_batch_charges_nothing(events: ChargedEvents) -> None:
    await events.record(*(seen(number) for number in range(1, 31)))
    records = await events.records()
    after = await events.confirms.read_cursor()
    await events.confirms.commit(records, after=after, cursor=records[-1].entry_id)
    await events.pool.execute(
        "UPDATE projection_cursors SET entry_id = $1 WHERE projection = 'charges'", after
    )

    result = await events.confirms.commit(records, after=after, cursor=records[-1].entry_id)

    assert result == BatchResult(repeated=30)
    assert len(await events.charged()) == 30


async def test_a_cursor_that_another_worker_moved_is_not_overwritten(events: ChargedEvents) -> None:
    await events.record(seen(1))
    [record] = await events.records()

    with pytest.raises(CursorMovedError):
        await events.confirms.commit([record], after="5-5", cursor=record.entry_id)
    with pytest.raises(CursorMovedError):
        await events.confirms.commit([], after="5-5", cursor=record.entry_id)

    assert await events.confirms.read_cursor() == "0-0"
    assert await events.charged() == []


async def test_a_batch_without_charges_only_moves_the_cursor(events: ChargedEvents) -> None:
    await events.record(an_impression("free"))
    [record] = await events.records()

    await events.charge()

    assert await events.confirms.read_cursor() == record.entry_id


async def test_without_running_budget_actors_the_cursor_stays(pool: Pool, valkey: Valkey) -> None:
    await insert_placement(pool)
    await insert_banner(pool)
    await insert_campaign(pool, CAMPAIGN)
    events = ChargedEvents(pool, valkey)
    await events.record(seen(1))

    with pytest.raises(UnavailableError):
        await events.charge()

    assert await events.confirms.read_cursor() == "0-0"


async def test_3000_charges_of_one_campaign_fit_through_its_mailbox(events: ChargedEvents) -> None:
    await events.record(*(seen(number) for number in range(1, 3_001)))

    await events.charge()

    assert await events.pool.fetchval("SELECT count(*) FROM money_entries") == 3_000


class FailingHost:
    """A host that fails every other group of charges, or whose mailbox is full for a while."""

    def __init__(self, *, full_times: int = 0) -> None:
        self.taken: list[Confirms] = []
        self.fails = True
        self.full_times = full_times

    def tell(self, address: Address, message: Any) -> bool:
        raise NotImplementedError(address, message)

    def send_durably(self, address: Address, message: Any) -> "asyncio.Future[None]":
        del address
        if self.full_times:
            self.full_times -= 1
            raise MailboxFullError("Full.")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.taken.append(message)
        if self.fails and len(self.taken) % 2:
            done.set_exception(UnavailableError("Not kept."))
        else:
            done.set_result(None)
        return done

    async def wait_until_sent(self) -> None:
        raise NotImplementedError


def make_projection(
    events: ChargedEvents, host: FailingHost, clock: Clock | None = None, term: Callable[[], int] = lambda: 1
) -> ConfirmProjection:
    return ConfirmProjection(
        ConfirmStore(events.pool, projection=CHARGES),
        events.lookup,
        CatalogAddresses(BudgetCatalog(events.pool)),
        host,
        clock or SystemClock(),
        term=term,
    )


async def test_if_one_charge_fails_the_cursor_stays_before_the_whole_batch(events: ChargedEvents) -> None:
    await events.record(*(seen(number) for number in range(1, 102)))
    host = FailingHost()

    with pytest.raises(UnavailableError, match="2 of 3"):
        await events.apply(make_projection(events, host))

    assert await events.confirms.read_cursor() == "0-0"
    assert [len(together.confirms) for together in host.taken] == [50, 50, 1]


async def test_a_projection_waits_for_a_full_mailbox(events: ChargedEvents) -> None:
    await events.record(seen(1), seen(2))
    host = FailingHost(full_times=3)
    host.fails = False

    assert await events.apply(make_projection(events, host)) == BatchResult(counted=2)


async def test_a_charge_is_durable_within_a_second_of_the_event(events: ChargedEvents) -> None:
    numbers = count(1)

    async def charge() -> None:
        await events.record(seen(next(numbers)))
        await events.charge()

    assert await measure_fastest(charge, seconds=1.0) < 1.0


async def test_spend_is_published_to_subscribers(events: ChargedEvents) -> None:
    received: list[bytes] = []
    async with events.valkey.pubsub() as subscription:
        await subscription.subscribe("adloom:brain:spend")
        await events.record(seen(1))
        await events.charge()
        async with asyncio.timeout(60):
            while not received:
                message: Any = await subscription.get_message(ignore_subscribe_messages=True, timeout=1)  # pyright: ignore[reportUnknownVariableType] - redis-py leaves it open
                if message is not None:
                    received.append(message["data"])

    assert received


class AdjustableClock:
    """A clock that a test can set back."""

    def __init__(self) -> None:
        self.wrong_by = timedelta()

    def now(self) -> datetime:
        return now() - self.wrong_by


async def test_a_clock_that_is_set_back_does_not_delay_charges(pool: Pool, valkey: Valkey) -> None:
    await insert_placement(pool)
    await insert_banner(pool)
    await insert_campaign(pool, CAMPAIGN)
    events, clock = ChargedEvents(pool, valkey), AdjustableClock()
    events.stage = Stage(pool, valkey, clock=clock)
    events.confirms = events.stage.budget_actors.confirms
    async with events.stage.running(), asyncio.TaskGroup() as group:
        await events.record(seen(1))
        await events.charge()
        await events.record(seen(2))
        charging = group.create_task(events.charge())
        await asyncio.sleep(0.2)
        clock.wrong_by = timedelta(hours=1)
        await asyncio.wait_for(charging, 60)

    assert await events.charged() == [1, 2]


# --- the fast path


async def test_offers_made_since_the_start_are_not_looked_up_in_the_money_ledger(
    events: ChargedEvents,
) -> None:
    clock, host = ManualClock(now()), FailingHost()
    host.fails = False
    charges = make_projection(events, host, clock)
    later = int(now().timestamp()) + 60
    await events.record(seen(1, charge=0))  # It costs nothing, and yet is a start.
    await events.apply(charges)
    await events.record(seen(3, offered_at=later), seen(4, offered_at=later))
    clock.advance(timedelta(seconds=61))

    assert await events.apply(charges) == BatchResult(counted=2)

    assert charges.certainly_new == 2


async def test_a_repeated_confirm_is_looked_up_in_the_money_ledger(events: ChargedEvents) -> None:
    later = int(now().timestamp()) + 60
    clock, host = ManualClock(now()), FailingHost()
    charges = make_projection(events, host, clock)
    await events.record(seen(9))
    with pytest.raises(UnavailableError):
        await events.apply(charges)
    clock.advance(timedelta(seconds=61))
    await events.record(seen(1, offered_at=later))

    for _ in range(2):
        host.taken.clear()
        with pytest.raises(UnavailableError):
            await events.apply(charges)

    assert charges.certainly_new == 1


async def test_a_new_term_starts_without_the_offers_of_the_last(events: ChargedEvents) -> None:
    later = int(now().timestamp()) + 60
    terms = [1]
    clock, host = ManualClock(now()), FailingHost()
    host.fails = False
    charges = make_projection(events, host, clock, lambda: terms[0])
    await events.record(seen(1))
    await events.apply(charges)
    clock.advance(timedelta(seconds=61))

    terms[0] = 2
    await events.record(seen(2, offered_at=later))
    await events.apply(charges)

    assert charges.certainly_new == 0
