"""Learning behind the real ledger and tables: every impression once, whatever stops in between."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from adloom.auction.features import banner_slots, request_slots
from adloom.auction.model import decode_model
from adloom.auction.training import Learner
from adloom.core.clock import ManualClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import RequestId
from adloom.events.auction_log.store import AuctionTables
from adloom.events.ctr import trainer as training
from adloom.events.ctr.pending import ExampleSampler
from adloom.events.ctr.publish import MODEL, MODEL_NOTICES, ModelPublisher
from adloom.events.ctr.store import LEARNING, LearningStore
from adloom.events.ctr.trainer import LearningProjection, Trainer
from adloom.events.log.event import Auctioned, Click, Impression, Mark
from adloom.events.log.stream import Lag
from adloom.events.ports import CursorMovedError
from adloom.runtime.ports import free_port
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import BANNER, CAMPAIGN, PLACEMENT, USER, a_click, an_auction, an_impression
from tests.events.catalog import insert_catalog
from tests.events.followed import Followed

NOW = datetime.now(UTC)
WAIT = timedelta(minutes=30)


def request(number: int) -> RequestId:
    return RequestId(UUID(int=(7 << 76) | (2 << 62) | number))


def held(number: int, **fields: Any) -> Auctioned:
    context = {
        "device": "mobile",
        "country": "FR",
        "segment": "high-intent",
        "hour": "9",
        "lastPurchaseDays": "3",
    }
    return an_auction(request(number), held_at=NOW, **{"context": context, **fields})


def seen(number: int, **fields: Any) -> Impression:
    return an_impression(f"seen {number}", **_of_offer(number), **fields)


def clicked(number: int, **fields: Any) -> Click:
    return a_click(f"clicked {number}", **_of_offer(number), **fields)


def _of_offer(number: int) -> dict[str, Any]:
    return {
        "request_id": request(number),
        "slot": 0,
        "offered_at": int(NOW.timestamp()),
        "occurred_at": NOW,
        "received_at": NOW,
        "user_id": USER,
    }


class House:
    """A ledger, all that is folded from it on the way to a model, and a clock."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.followed = Followed(pool, valkey)
        self.auctions = AuctionTables(pool, clock=ManualClock(NOW), kept_days=7)
        self.store = LearningStore(pool)
        self.projection = LearningProjection(self.store, wait=WAIT)
        # Entries of the ledger have the time of Valkey, which has gone on since this file was read.
        self.clock = ManualClock(datetime.now(UTC))
        self.lag = Lag(0, 0.0)
        self.publisher = ModelPublisher(valkey)
        self.trainer = self.a_trainer()

    def a_trainer(self) -> Trainer:
        async def lag(_: str) -> Lag:
            return self.lag

        return Trainer(self.store, self.publisher, self.clock, wait=WAIT, is_owner=lambda: True, lag=lag)

    async def happened(self, *events: Auctioned | Impression | Click) -> None:
        await self.followed.happened(*events)
        await self.followed.apply(self.auctions)
        await self.followed.apply(self.projection)

    async def waiting(self) -> int:
        pieces = await self.store.read_due(datetime.max.replace(tzinfo=UTC), pieces_max=1_000)
        return sum(len(piece.examples) for piece in pieces)

    async def learned(self) -> tuple[int, int]:
        """Let the wait pass, learn, and tell how many were clicked of how many."""
        self.clock.advance(WAIT + timedelta(minutes=1))
        await self.trainer.learn()
        learner = self.trainer.learner
        assert learner is not None
        return learner.progress.clicks, learner.progress.examples


@pytest.fixture
async def house(pool: Pool, valkey: Valkey) -> House:
    await insert_catalog(pool)
    await pool.execute("UPDATE placements SET delivery = 'auction' WHERE public_id = $1", PLACEMENT)
    return House(pool, valkey)


async def test_what_was_clicked_in_time_is_a_click_and_the_rest_is_none(house: House) -> None:
    await house.happened(*(held(number) for number in range(10)), *(seen(number) for number in range(10)))
    await house.happened(clicked(3), clicked(5))

    assert await house.learned() == (2, 10)
    assert await house.waiting() == 0


async def test_nothing_is_learned_before_its_time(house: House) -> None:
    await house.happened(held(1), seen(1), clicked(1))
    house.clock.advance(WAIT - timedelta(minutes=1))

    assert await house.trainer.learn() == 0
    assert await house.waiting() == 1


async def test_nothing_is_learned_before_its_click_can_be_looked_up(house: House) -> None:
    await house.happened(held(1), seen(1))
    house.clock.advance(timedelta(hours=2))
    house.lag = Lag(5, timedelta(minutes=100).total_seconds())

    assert await house.trainer.learn() == 0


async def test_a_click_that_comes_too_late_is_none(house: House, pool: Pool) -> None:
    await house.happened(held(1), seen(1), clicked(1))
    await pool.execute("UPDATE events.banner_clicks SET entry_ms = entry_ms + $1", 31 * 60 * 1000)

    assert await house.learned() == (0, 1)


async def test_what_is_not_valid_or_of_no_auction_is_not_learned(house: House) -> None:
    await house.happened(
        *(held(number) for number in range(5)),
        seen(0),
        seen(1, marks=(Mark.CRAWLER,)),
        an_impression("again", **_of_offer(0)),  # A second impression of the same offer.
        seen(0),  # The same one once more.
        seen(9),  # Nobody has recorded its auction.
        an_impression("without an offer", occurred_at=NOW, received_at=NOW),
        seen(2),
        clicked(2, marks=(Mark.PREFETCH,)),
    )

    assert await house.learned() == (0, 2)


async def test_a_placement_without_auctions_is_not_learned_from(house: House, pool: Pool) -> None:
    await pool.execute("UPDATE placements SET delivery = 'direct'")
    await house.happened(held(1), seen(1))

    assert await house.waiting() == 0


async def test_an_erased_user_is_not_learned_from(house: House) -> None:
    await house.followed.erase(USER)
    await house.happened(held(1), seen(1))

    assert await house.waiting() == 0


async def test_an_example_has_what_was_known_at_the_auction(house: House, pool: Pool) -> None:
    keys = [
        await pool.fetchval(f"SELECT id FROM {table} WHERE public_id = $1", public_id)  # noqa: S608 - one of three
        for table, public_id in (("placements", PLACEMENT), ("banners", BANNER), ("campaigns", CAMPAIGN))
    ]
    await house.happened(held(1), seen(1, device_type="desktop", country_code="DE"))
    [piece] = await house.store.read_due(NOW + timedelta(days=1), pieces_max=10)
    [one] = piece.examples

    assert [one.placement_key, one.banner_key, one.campaign_key] == keys
    assert (one.placement_type, one.segment, one.last_purchase_days) == ("feed", "high-intent", 3)
    assert (one.device, one.country) == ("mobile", "FR")
    assert one.hour == 9


async def test_what_the_auction_did_not_know_is_not_known(house: House) -> None:
    await house.happened(held(1, context={}), seen(1, device_type="desktop", country_code="DE"))
    [piece] = await house.store.read_due(NOW + timedelta(days=1), pieces_max=10)
    [one] = piece.examples

    assert (one.device, one.country, one.segment, one.hour, one.last_purchase_days) == (None,) * 5


async def test_a_batch_that_comes_twice_waits_once(house: House) -> None:
    await house.happened(held(1), seen(1))
    records = await house.followed.records()

    with pytest.raises(CursorMovedError):
        await house.projection.commit(records, after="0-0", cursor=records[-1].entry_id)

    assert await house.waiting() == 1


async def test_a_restarted_worker_goes_on_where_the_last_was(house: House, pool: Pool) -> None:
    for part in range(4):
        numbers = range(part * 20, part * 20 + 20)
        await house.happened(*map(held, numbers), *map(seen, numbers), clicked(part * 20))
        house.trainer = house.a_trainer()
        await house.learned()
    kept = await house.store.read_state()
    assert kept.state is not None
    restarted = Learner.decode(kept.state)

    assert (restarted.progress.clicks, restarted.progress.examples, kept.version) == (4, 80, 4)
    assert await pool.fetchval("SELECT count(*) FROM learning_waiting") == 0


async def test_of_two_workers_one_learns(house: House) -> None:
    other = house.a_trainer()
    await house.happened(held(1), seen(1))
    assert await house.learned() == (0, 1)
    await other.learn()
    await house.happened(held(2), seen(2))
    house.clock.advance(WAIT + timedelta(minutes=1))
    await other.learn()
    await house.happened(held(3), seen(3))
    house.clock.advance(WAIT + timedelta(minutes=1))

    with pytest.raises(CursorMovedError):
        await house.trainer.learn()

    assert house.trainer.learner is None
    await house.trainer.learn()
    assert house.trainer.progress.examples == 3


async def test_what_was_not_saved_is_learned_again(house: House) -> None:
    class Lossy(LearningStore):
        is_lossy = True

        async def save_state(self, *args: Any, **fields: Any) -> None:
            if self.is_lossy:
                raise UnavailableError("The database is away.")
            await super().save_state(*args, **fields)

    house.store = store = Lossy(house.followed.pool)
    house.trainer = house.a_trainer()
    await house.happened(held(1), seen(1), clicked(1))
    with pytest.raises(UnavailableError):
        await house.learned()
    store.is_lossy = False

    assert await house.learned() == (1, 1)


async def test_a_model_is_published_when_it_is_new_and_not_too_often(house: House, valkey: Valkey) -> None:
    async with valkey.pubsub() as listening:
        await listening.subscribe(MODEL_NOTICES)
        await house.happened(held(1), seen(1), clicked(1))
        await house.learned()
        await house.trainer.publish()
        await house.trainer.publish()
        heard: list[Any] = [await listening.get_message(timeout=1) for _ in range(3)]

    model = decode_model(await published(valkey))
    assert (model.version, model.examples) == (1, 1)
    assert [one["data"] for one in heard if one and one["type"] == "message"] == [b"1"]
    assert house.publisher.published == 1


async def test_a_model_that_got_lost_is_published_again(house: House, valkey: Valkey) -> None:
    await house.happened(held(1), seen(1), clicked(1))
    await house.learned()
    await house.trainer.publish()
    await valkey.delete(MODEL)
    house.clock.advance(timedelta(seconds=training.PUBLISH_SECONDS))
    await house.trainer.publish()

    assert decode_model(await published(valkey)).version == 1


async def test_an_empty_model_is_not_published(house: House, valkey: Valkey) -> None:
    await house.trainer.learn()
    await house.trainer.publish()

    assert await valkey.get(MODEL) is None


async def test_a_state_of_another_release_is_replaced(house: House, pool: Pool) -> None:
    await pool.execute(
        "INSERT INTO learning_states (name, version, state, learned_at) VALUES ($1, 5, 'x', now())", LEARNING
    )
    await house.happened(held(1), seen(1))

    assert await house.learned() == (0, 1)
    assert (await house.store.read_state()).version == 6


async def test_weights_are_those_of_the_keys_that_delivery_knows(house: House, pool: Pool) -> None:
    key = await pool.fetchval("SELECT id FROM banners WHERE public_id = $1", BANNER)
    await house.happened(held(1), seen(1), clicked(1))
    await house.learned()
    learner = house.trainer.learner
    assert learner is not None
    weights = learner.build_model(version=1, at=0.0).weights

    assert all(weights[slot] > 0 for slot in banner_slots(key, "mobile", "high-intent"))
    assert all(weights[slot] > 0 for slot in request_slots("mobile", "FR", 9, "high-intent"))


async def test_the_projection_counts_the_examples_it_dropped(house: House) -> None:
    narrow = LearningProjection(house.store, wait=WAIT, sampler=ExampleSampler(per_second_max=1))
    await house.followed.happened(*map(held, range(30)), *map(seen, range(30)))
    await house.followed.apply(house.auctions)
    result = await house.followed.apply(narrow)

    assert (result.counted, result.dropped) == (10, 20)
    assert await house.waiting() == 10


def test_an_inlet_takes_evenly_and_refills() -> None:
    inlet = ExampleSampler(per_second_max=2)

    assert inlet.sample(range(40), now_ms=1_000_000) == list(range(0, 40, 2))
    assert list(inlet.sample(range(4), now_ms=1_000_000)) == []
    assert list(inlet.sample(range(4), now_ms=1_001_000)) == [0, 2]


async def published(valkey: Valkey) -> bytes:
    blob = await valkey.get(MODEL)
    assert isinstance(blob, bytes)
    return blob


async def test_a_trainer_learns_and_publishes_while_it_is_the_owner(house: House, valkey: Valkey) -> None:
    await house.happened(held(1), seen(1), clicked(1))
    house.clock.advance(WAIT + timedelta(minutes=1))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(house.trainer.run(stop))
        async with asyncio.timeout(10):
            while await valkey.get(MODEL) is None:  # noqa: ASYNC110 - another task's work
                await asyncio.sleep(0.01)
        stop.set()

    assert (house.trainer.clicked, house.trainer.ignored, house.trainer.failures) == (1, 0, 0)


async def test_a_trainer_that_is_not_the_owner_does_nothing(house: House) -> None:
    async def lag(_: str) -> Lag:
        return house.lag

    idle = Trainer(house.store, house.publisher, house.clock, wait=WAIT, is_owner=lambda: False, lag=lag)
    await house.happened(held(1), seen(1))
    house.clock.advance(WAIT + timedelta(minutes=1))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(idle.run(stop))
        await asyncio.sleep(0.1)
        stop.set()

    assert (idle.learner, await house.waiting()) == (None, 1)


@contextlib.contextmanager
def a_worker(database_url: str, redis_url: str) -> Generator[None]:
    environment = {
        **os.environ,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "WORKER_PORT": str(free_port()),
        "ADLOOM_LEARNING_WAIT_SECONDS": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "adloom.app.worker"], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.process
async def test_workers_that_are_killed_learn_everything_once(
    house: House, pool: Pool, database_url: str, redis_url: str
) -> None:
    offers, clicks = 3_000, 60

    async def examples() -> int:
        kept = await house.store.read_state()
        return Learner.decode(kept.state).progress.examples if kept.state else 0

    for start in range(0, offers, 500):
        numbers = range(start, start + 500)
        await house.followed.append(*map(held, numbers), *map(seen, numbers))
        await house.followed.append(*(clicked(number) for number in range(start, start + clicks // 6)))
    async with asyncio.timeout(90):
        for wanted in (1, offers // 2, offers):
            with a_worker(database_url, redis_url):
                while await examples() < wanted:  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
    kept = await house.store.read_state()
    assert kept.state is not None
    progress = Learner.decode(kept.state).progress

    assert (progress.examples, progress.clicks) == (offers, clicks)
    assert await pool.fetchval("SELECT count(*) FROM learning_waiting") == 0
