"""Charges: every valid first impression, or click, of an offer that costs something, once and never twice."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from adloom.budgets.charges.projection import CHARGES, ChargesProjection
from adloom.budgets.charges.store import ChargeStore
from adloom.budgets.config.catalog_store import BudgetCatalog
from adloom.budgets.config.entity_config import CatalogAddresses
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

COST = Micros(5_000)


def now() -> datetime:
    return datetime.now(UTC)


def offer(number: int, **fields: Any) -> dict[str, Any]:
    """What a token says of an offer; by default it is paid for by its impression."""
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


class House(Followed):
    """The ledger, its tables, and the budget actors that charge."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        super().__init__(pool, valkey)
        self.stage = Stage(pool, valkey)
        self.charges = self.stage.budget_actors.charges

    async def charge(self) -> BatchResult:
        return await self.apply(self.charges)

    async def entries(self) -> list[tuple[int, str, str, int]]:
        rows = await self.pool.fetch(
            "SELECT request_id, kind, confirmed_by, amount_micros FROM money_entries "
            "WHERE kind <> 'release' ORDER BY request_id"
        )
        return [(row["request_id"].int, *tuple(row)[1:]) for row in rows]

    async def charged(self) -> list[int]:
        return [number for number, kind, _, _ in await self.entries() if kind == "charge"]


@pytest.fixture
async def house(pool: Pool, valkey: Valkey) -> AsyncGenerator[House]:
    await insert_placement(pool)
    await insert_banner(pool)
    await insert_campaign(pool, CAMPAIGN, daily=10_000)
    house = House(pool, valkey)
    async with house.stage.running():
        yield house


# --- what is charged


async def test_an_impression_of_an_offer_that_costs_something_is_charged(house: House) -> None:
    await house.record(seen(1), seen(2, charge=Micros(0)), an_impression("without a token"))

    folded = await house.charge()

    assert await house.entries() == [(1, "charge", "impression", COST)]
    assert folded == BatchResult(counted=1)
    assert await house.pool.fetchval("SELECT spent_micros FROM spend_days") == COST
    state = await house.stage.state(CAMPAIGN)
    assert state is not None
    assert (state.spent_today, state.spent_total) == (COST, COST)


async def test_an_offer_that_is_paid_by_the_click_costs_nothing_before_it(house: House) -> None:
    by_click = {"charged_by": ChargedBy.CLICK}
    await house.record(seen(1, **by_click), seen(2, **by_click), clicked(2, **by_click))

    await house.charge()

    assert await house.entries() == [(2, "charge", "click", COST)]


async def test_a_click_of_an_offer_that_is_paid_by_the_impression_costs_nothing_more(house: House) -> None:
    await house.record(seen(1), clicked(1))

    await house.charge()

    assert await house.entries() == [(1, "charge", "impression", COST)]


@pytest.mark.parametrize("mark", [Mark.CRAWLER, Mark.PREFETCH, Mark.ADDRESS_FLOOD, Mark.TOKEN_EXPIRED])
async def test_what_is_not_valid_is_not_charged(house: House, mark: Mark) -> None:
    by_click = {"charged_by": ChargedBy.CLICK}
    await house.record(
        seen(1, marks=(mark,)), seen(2, **by_click), clicked(2, marks=(mark,), **by_click), seen(3)
    )

    await house.charge()

    assert await house.charged() == [3]


async def test_a_harmless_mark_changes_nothing(house: House) -> None:
    await house.record(seen(1, marks=(Mark.OCCURRED_AT_REPLACED,)))

    await house.charge()

    assert await house.charged() == [1]


async def test_an_offer_is_charged_once_however_often_it_is_reported(house: House) -> None:
    await house.record(seen(1, "a"), seen(1, "b"), seen(1, "a"))
    await house.charge()
    await house.record(seen(1, "c"))
    await house.charge()

    assert await house.entries() == [(1, "charge", "impression", COST)]


async def test_a_click_that_comes_before_its_impression_is_charged_when_that_comes(house: House) -> None:
    by_click = {"charged_by": ChargedBy.CLICK}
    await house.record(clicked(1, **by_click))
    await house.charge()
    assert await house.charged() == []

    await house.record(seen(1, **by_click))
    await house.charge()

    assert await house.entries() == [(1, "charge", "click", COST)]


async def test_a_click_and_its_late_impression_in_one_batch_are_one_charge(house: House) -> None:
    by_click = {"charged_by": ChargedBy.CLICK}
    await house.record(clicked(1, **by_click))
    await house.record(seen(1, **by_click))

    assert await house.charge() == BatchResult(counted=1)
    assert await house.charged() == [1]


async def test_a_bad_click_is_not_made_good_by_a_late_impression(house: House) -> None:
    by_click = {"charged_by": ChargedBy.CLICK}
    await house.record(clicked(1, marks=(Mark.CRAWLER,), **by_click))
    await house.record(seen(1, **by_click))

    await house.charge()

    assert await house.charged() == []


async def test_an_offer_of_a_campaign_that_is_not_in_the_catalog_is_dropped_and_counted(house: House) -> None:
    await house.record(seen(1, campaign_id=UNKNOWN_ID), seen(2))

    assert await house.charge() == BatchResult(counted=1, dropped=1)
    assert await house.charged() == [2]


async def test_what_is_beyond_the_budget_is_in_the_ledger_and_not_billed(house: House) -> None:
    await house.pool.execute("UPDATE campaigns SET budget_daily_paisa = 1")  # 10,000 micros: two offers.
    await house.record(*(seen(number) for number in range(1, 5)))

    await house.charge()

    kinds = sorted(kind for _, kind, _, _ in await house.entries())
    assert kinds == ["charge", "charge", "unbilled", "unbilled"]


# --- once, whatever happens


async def test_a_batch_that_comes_again_charges_nothing(house: House) -> None:
    await house.record(*(seen(number) for number in range(1, 31)))
    records = await house.records()
    after = await house.charges.read_cursor()
    await house.charges.commit(records, after=after, cursor=records[-1].entry_id)
    await house.pool.execute(
        "UPDATE projection_cursors SET entry_id = $1 WHERE projection = 'charges'", after
    )

    folded = await house.charges.commit(records, after=after, cursor=records[-1].entry_id)

    assert folded == BatchResult(repeated=30)
    assert len(await house.charged()) == 30


async def test_a_cursor_that_another_has_moved_stays_where_it_is(house: House) -> None:
    await house.record(seen(1))
    [record] = await house.records()

    with pytest.raises(CursorMovedError):
        await house.charges.commit([record], after="5-5", cursor=record.entry_id)
    with pytest.raises(CursorMovedError):
        await house.charges.commit([], after="5-5", cursor=record.entry_id)

    assert await house.charges.read_cursor() == "0-0"
    assert await house.charged() == []


async def test_a_batch_without_anything_that_costs_moves_the_cursor_alone(house: House) -> None:
    await house.record(an_impression("free"))
    [record] = await house.records()

    await house.charge()

    assert await house.charges.read_cursor() == record.entry_id


async def test_without_a_host_nothing_is_moved(pool: Pool, valkey: Valkey) -> None:
    await insert_placement(pool)
    await insert_banner(pool)
    await insert_campaign(pool, CAMPAIGN)
    house = House(pool, valkey)
    await house.record(seen(1))

    with pytest.raises(UnavailableError):
        await house.charge()

    assert await house.charges.read_cursor() == "0-0"


async def test_many_charges_of_one_campaign_find_room_in_its_mailbox(house: House) -> None:
    await house.record(*(seen(number) for number in range(1, 3_001)))

    await house.charge()

    assert await house.pool.fetchval("SELECT count(*) FROM money_entries") == 3_000


class Failing:
    """A host that keeps every other group of charges, or has no room for a while."""

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


def charging(
    house: House, host: Failing, clock: Clock | None = None, turn: Callable[[], int] = lambda: 1
) -> ChargesProjection:
    return ChargesProjection(
        ChargeStore(house.pool, projection=CHARGES),
        house.lookup,
        CatalogAddresses(BudgetCatalog(house.pool)),
        host,
        clock or SystemClock(),
        term=turn,
    )


async def test_where_one_charge_is_not_known_to_be_kept_the_whole_batch_comes_again(house: House) -> None:
    await house.record(*(seen(number) for number in range(1, 102)))
    host = Failing()

    with pytest.raises(UnavailableError, match="2 of 3"):
        await house.apply(charging(house, host))

    assert await house.charges.read_cursor() == "0-0"
    assert [len(together.confirms) for together in host.taken] == [50, 50, 1]


async def test_a_full_mailbox_is_waited_for(house: House) -> None:
    await house.record(seen(1), seen(2))
    host = Failing(full_times=3)
    host.fails = False

    assert await house.apply(charging(house, host)) == BatchResult(counted=2)


async def test_a_charge_is_durable_within_a_second_of_the_event(house: House) -> None:
    clock = asyncio.get_running_loop().time
    await house.record(seen(1))
    began_at = clock()

    await house.charge()

    assert clock() - began_at < 1.0


async def test_what_was_spent_is_said_to_whoever_listens(house: House) -> None:
    heard: list[bytes] = []
    async with house.valkey.pubsub() as news:
        await news.subscribe("adloom:brain:spend")
        await house.record(seen(1))
        await house.charge()
        async with asyncio.timeout(2):
            while not heard:
                message: Any = await news.get_message(ignore_subscribe_messages=True, timeout=1)  # pyright: ignore[reportUnknownVariableType] - redis-py leaves it open
                if message is not None:
                    heard.append(message["data"])

    assert heard


class SetBack:
    """A clock that is set back by an hour when it is told to."""

    def __init__(self) -> None:
        self.wrong_by = timedelta()

    def now(self) -> datetime:
        return now() - self.wrong_by


async def test_a_clock_that_is_set_back_does_not_hold_charges_up(pool: Pool, valkey: Valkey) -> None:
    await insert_placement(pool)
    await insert_banner(pool)
    await insert_campaign(pool, CAMPAIGN)
    house, clock = House(pool, valkey), SetBack()
    house.stage = Stage(pool, valkey, clock=clock)
    house.charges = house.stage.budget_actors.charges
    async with house.stage.running(), asyncio.TaskGroup() as group:
        await house.record(seen(1))
        await house.charge()
        await house.record(seen(2))
        charging = group.create_task(house.charge())
        await asyncio.sleep(0.2)
        clock.wrong_by = timedelta(hours=1)
        await asyncio.wait_for(charging, 5)

    assert await house.charged() == [1, 2]


# --- the fast path


async def test_the_money_ledger_is_not_asked_about_offers_made_since_we_began(house: House) -> None:
    clock, host = ManualClock(now()), Failing()
    host.fails = False
    charges = charging(house, host, clock)
    later = int(now().timestamp()) + 60
    await house.record(seen(1), seen(2))
    await house.apply(charges)
    await house.record(seen(3, offered_at=later), seen(4, offered_at=later))
    clock.advance(timedelta(seconds=61))

    assert await house.apply(charges) == BatchResult(counted=2)

    assert charges.certainly_new == 2


async def test_what_we_have_confirmed_ourselves_is_asked_about_when_it_comes_again(house: House) -> None:
    later = int(now().timestamp()) + 60
    clock, host = ManualClock(now()), Failing()
    charges = charging(house, host, clock)
    await house.record(seen(9))
    with pytest.raises(UnavailableError):
        await house.apply(charges)
    clock.advance(timedelta(seconds=61))
    await house.record(seen(1, offered_at=later))

    for _ in range(2):
        host.taken.clear()
        with pytest.raises(UnavailableError):
            await house.apply(charges)

    assert charges.certainly_new == 1


async def test_in_a_new_turn_nothing_is_remembered_of_the_last(house: House) -> None:
    later = int(now().timestamp()) + 60
    turns = [1]
    clock, host = ManualClock(now()), Failing()
    host.fails = False
    charges = charging(house, host, clock, lambda: turns[0])
    await house.record(seen(1))
    await house.apply(charges)
    clock.advance(timedelta(seconds=61))

    turns[0] = 2
    await house.record(seen(2, offered_at=later))
    await house.apply(charges)

    assert charges.certainly_new == 0
