"""Learning from the real log and tables: every impression once, whatever stops in between."""

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

from adloom.app.metrics.worker import register_learning
from adloom.auction.calibration import CalibrationReport
from adloom.auction.features import find_banner_slots, request_slots
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
from adloom.events.log.event import AuctionEntry, Click, Impression, Mark
from adloom.events.log.stream import Lag
from adloom.events.ports import CursorMovedError
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import Valkey
from tests.events.builders import BANNER, CAMPAIGN, PLACEMENT, USER, a_click, an_auction, an_impression
from tests.events.catalog import insert_catalog
from tests.events.followed import Followed
from tests.support.forked import ForkedPopen

NOW = datetime.now(UTC)
WAIT = timedelta(minutes=30)


def request(number: int) -> RequestId:
    return RequestId(UUID(int=(7 << 76) | (2 << 62) | number))


def held(number: int, **fields: Any) -> AuctionEntry:
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


class LearningSystem:
    """A log, all projections that a model needs, and a clock."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.followed = Followed(pool, valkey)
        self.auctions = AuctionTables(pool, clock=ManualClock(NOW), kept_days=7)
        self.store = LearningStore(pool)
        self.projection = LearningProjection(self.store, wait=WAIT)
        # Entries of the log have Valkey's time, which is later than when this file was imported.
        self.clock = ManualClock(datetime.now(UTC))
        self.lag = Lag(0, 0.0)
        self.publisher = ModelPublisher(valkey)
        self.trainer = self.a_trainer()

    def a_trainer(self) -> Trainer:
        async def lag(_: str) -> Lag:
            return self.lag

        return Trainer(self.store, self.publisher, self.clock, wait=WAIT, is_owner=lambda: True, lag=lag)

    async def record(self, *events: AuctionEntry | Impression | Click) -> None:
        await self.followed.record(*events)
        await self.followed.apply(self.auctions)
        await self.followed.apply(self.projection)

    async def waiting(self) -> int:
        pieces = await self.store.read_due(datetime.max.replace(tzinfo=UTC), pieces_max=1_000)
        return sum(len(piece.examples) for piece in pieces)

    async def learned(self) -> tuple[int, int]:
        """Let the wait pass, learn, and return (clicks, examples)."""
        self.clock.advance(WAIT + timedelta(minutes=1))
        await self.trainer.learn()
        learner = self.trainer.learner
        assert learner is not None
        return learner.progress.clicks, learner.progress.examples


@pytest.fixture
async def system(pool: Pool, valkey: Valkey) -> LearningSystem:
    await insert_catalog(pool)
    await pool.execute("UPDATE placements SET delivery = 'auction' WHERE public_id = $1", PLACEMENT)
    return LearningSystem(pool, valkey)


async def test_an_impression_clicked_within_the_wait_is_learned_as_a_click(system: LearningSystem) -> None:
    await system.record(*(held(number) for number in range(10)), *(seen(number) for number in range(10)))
    await system.record(clicked(3), clicked(5))

    assert await system.learned() == (2, 10)
    assert await system.waiting() == 0


async def test_the_calibration_of_both_predictions_is_a_metric_once_somebody_has_clicked(
    system: LearningSystem,
) -> None:
    metrics = Metrics("worker")
    register_learning(metrics, system.trainer)

    def read(scoring: str) -> float | None:
        return metrics.registry.get_sample_value("adloom_ctr_calibration", {"scoring": scoring})

    def find_report(scoring: str) -> CalibrationReport:
        assert system.trainer.learner is not None
        return next(one for one in system.trainer.learner.calibrations if one.scoring == scoring)

    before = read("learned")
    await system.record(*(held(number) for number in range(10)), *(seen(number) for number in range(10)))
    await system.learned()
    unclicked = read("learned")
    await system.record(
        *(held(number) for number in range(10, 20)), *(seen(number) for number in range(10, 20))
    )
    await system.record(clicked(13), clicked(15))
    await system.learned()

    assert (before, unclicked) == (None, None)
    for scoring in ("learned", "heuristic"):
        report = find_report(scoring)
        assert report.clicks == pytest.approx(2, rel=0.01)
        assert read(scoring) == pytest.approx(report.predicted_clicks / report.clicks)
        assert read(scoring) != 1


async def test_an_impression_is_not_learned_before_the_wait_is_over(system: LearningSystem) -> None:
    await system.record(held(1), seen(1), clicked(1))
    system.clock.advance(WAIT - timedelta(minutes=1))

    assert await system.trainer.learn() == 0
    assert await system.waiting() == 1


async def test_an_impression_is_not_learned_while_the_event_tables_lag(system: LearningSystem) -> None:
    await system.record(held(1), seen(1))
    system.clock.advance(timedelta(hours=2))
    system.lag = Lag(5, timedelta(minutes=100).total_seconds())

    assert await system.trainer.learn() == 0


async def test_it_is_not_asked_how_far_the_tables_are_while_nothing_is_due(
    system: LearningSystem,
) -> None:
    asked: list[str] = []

    async def lag(cursor: str) -> Lag:
        asked.append(cursor)
        return Lag(0, 0.0)

    trainer = Trainer(system.store, system.publisher, system.clock, wait=WAIT, is_owner=lambda: True, lag=lag)
    await system.record(held(1), seen(1))

    assert (await trainer.learn(), asked) == (0, [])
    system.clock.advance(WAIT + timedelta(minutes=1))
    assert (await trainer.learn(), len(asked)) == (1, 1)


async def test_a_click_after_the_wait_is_not_learned(system: LearningSystem, pool: Pool) -> None:
    await system.record(held(1), seen(1), clicked(1))
    await pool.execute("UPDATE events.banner_clicks SET entry_ms = entry_ms + $1", 31 * 60 * 1000)

    assert await system.learned() == (0, 1)


async def test_only_valid_impressions_of_recorded_auctions_are_learned(system: LearningSystem) -> None:
    await system.record(
        *(held(number) for number in range(5)),
        seen(0),
        seen(1, marks=(Mark.CRAWLER,)),
        an_impression("again", **_of_offer(0)),  # A second impression of the same offer.
        seen(0),  # The same one once more.
        seen(9),  # Its auction was not recorded.
        an_impression("without an offer", occurred_at=NOW, received_at=NOW),
        seen(2),
        clicked(2, marks=(Mark.PREFETCH,)),
    )

    assert await system.learned() == (0, 2)


async def test_an_address_teaches_nothing_beyond_its_bound_for_a_campaign(system: LearningSystem) -> None:
    flood = {"marks": (Mark.CAMPAIGN_FLOOD,)}
    await system.record(
        *(held(number) for number in range(6)),
        seen(0),
        seen(1),
        *(seen(number, **flood) for number in range(2, 5)),
        clicked(0),
        clicked(1, **flood),
    )

    assert await system.learned() == (1, 2)


async def test_a_placement_without_auctions_is_not_learned_from(system: LearningSystem, pool: Pool) -> None:
    await pool.execute("UPDATE placements SET delivery = 'direct'")
    await system.record(held(1), seen(1))

    assert await system.waiting() == 0


async def test_an_erased_user_is_not_learned_from(system: LearningSystem) -> None:
    await system.followed.erase(USER)
    await system.record(held(1), seen(1))

    assert await system.waiting() == 0


async def test_an_example_has_what_was_known_at_the_auction(system: LearningSystem, pool: Pool) -> None:
    keys = [
        await pool.fetchval(f"SELECT id FROM {table} WHERE public_id = $1", public_id)  # noqa: S608 - one of three
        for table, public_id in (("placements", PLACEMENT), ("banners", BANNER), ("campaigns", CAMPAIGN))
    ]
    await system.record(held(1), seen(1, device_type="desktop", country_code="DE"))
    [piece] = await system.store.read_due(NOW + timedelta(days=1), pieces_max=10)
    [one] = piece.examples

    assert [one.placement_key, one.banner_key, one.campaign_key] == keys
    assert (one.placement_type, one.segment, one.last_purchase_days) == ("feed", "high-intent", 3)
    assert (one.device, one.country) == ("mobile", "FR")
    assert one.hour == 9


async def test_an_example_omits_what_the_auction_did_not_know(system: LearningSystem) -> None:
    await system.record(held(1, context={}), seen(1, device_type="desktop", country_code="DE"))
    [piece] = await system.store.read_due(NOW + timedelta(days=1), pieces_max=10)
    [one] = piece.examples

    assert (one.device, one.country, one.segment, one.hour, one.last_purchase_days) == (None,) * 5


async def test_a_repeated_batch_is_queued_once(system: LearningSystem) -> None:
    await system.record(held(1), seen(1))
    records = await system.followed.records()

    with pytest.raises(CursorMovedError):
        await system.projection.commit(records, after="0-0", cursor=records[-1].entry_id)

    assert await system.waiting() == 1


async def test_a_restarted_worker_continues_from_the_saved_state(system: LearningSystem, pool: Pool) -> None:
    for part in range(4):
        numbers = range(part * 20, part * 20 + 20)
        await system.record(*map(held, numbers), *map(seen, numbers), clicked(part * 20))
        system.trainer = system.a_trainer()
        await system.learned()
    kept = await system.store.read_state()
    assert kept.state is not None
    restarted = Learner.decode(kept.state)

    assert (restarted.progress.clicks, restarted.progress.examples, kept.version) == (4, 80, 4)
    assert await pool.fetchval("SELECT count(*) FROM learning_waiting") == 0


async def test_only_one_of_two_workers_learns(system: LearningSystem) -> None:
    other = system.a_trainer()
    await system.record(held(1), seen(1))
    assert await system.learned() == (0, 1)
    await other.learn()
    await system.record(held(2), seen(2))
    system.clock.advance(WAIT + timedelta(minutes=1))
    await other.learn()
    await system.record(held(3), seen(3))
    system.clock.advance(WAIT + timedelta(minutes=1))

    with pytest.raises(CursorMovedError):
        await system.trainer.learn()

    assert system.trainer.learner is None
    await system.trainer.learn()
    assert system.trainer.progress.examples == 3


async def test_examples_whose_state_was_not_saved_are_learned_again(system: LearningSystem) -> None:
    class Lossy(LearningStore):
        is_lossy = True

        async def save_state(self, *args: Any, **fields: Any) -> None:
            if self.is_lossy:
                raise UnavailableError("The database is away.")
            await super().save_state(*args, **fields)

    system.store = store = Lossy(system.followed.pool)
    system.trainer = system.a_trainer()
    await system.record(held(1), seen(1), clicked(1))
    with pytest.raises(UnavailableError):
        await system.learned()
    store.is_lossy = False

    assert await system.learned() == (1, 1)


async def test_a_new_model_is_published_once(system: LearningSystem, valkey: Valkey) -> None:
    async with valkey.pubsub() as listening:
        await listening.subscribe(MODEL_NOTICES)
        await system.record(held(1), seen(1), clicked(1))
        await system.learned()
        await system.trainer.publish()
        await system.trainer.publish()
        messages: list[Any] = [await listening.get_message(timeout=seconds) for seconds in (30, 30, 1)]

    model = decode_model(await published(valkey))
    assert (model.version, model.examples) == (1, 1)
    assert [one["data"] for one in messages if one and one["type"] == "message"] == [b"1"]
    assert system.publisher.published == 1


async def test_a_lost_model_is_published_again(system: LearningSystem, valkey: Valkey) -> None:
    await system.record(held(1), seen(1), clicked(1))
    await system.learned()
    await system.trainer.publish()
    await valkey.delete(MODEL)
    system.clock.advance(timedelta(seconds=training.PUBLISH_SECONDS))
    await system.trainer.publish()

    assert decode_model(await published(valkey)).version == 1


async def test_an_empty_model_is_not_published(system: LearningSystem, valkey: Valkey) -> None:
    await system.trainer.learn()
    await system.trainer.publish()

    assert await valkey.get(MODEL) is None


async def test_a_state_of_another_release_is_replaced(system: LearningSystem, pool: Pool) -> None:
    await pool.execute(
        "INSERT INTO learning_states (name, version, state, learned_at) VALUES ($1, 5, 'x', now())", LEARNING
    )
    await system.record(held(1), seen(1))

    assert await system.learned() == (0, 1)
    assert (await system.store.read_state()).version == 6


async def test_weights_belong_to_the_keys_that_delivery_uses(system: LearningSystem, pool: Pool) -> None:
    key = await pool.fetchval("SELECT id FROM banners WHERE public_id = $1", BANNER)
    await system.record(held(1), seen(1), clicked(1))
    await system.learned()
    learner = system.trainer.learner
    assert learner is not None
    weights = learner.build_model(version=1, at=0.0).weights

    assert all(weights[slot] > 0 for slot in find_banner_slots(key, "mobile", "high-intent"))
    assert all(weights[slot] > 0 for slot in request_slots("mobile", "FR", 9, "high-intent"))


async def test_the_projection_counts_the_examples_it_dropped(system: LearningSystem) -> None:
    narrow = LearningProjection(system.store, wait=WAIT, sampler=ExampleSampler(per_second_max=1))
    await system.followed.record(*map(held, range(30)), *map(seen, range(30)))
    await system.followed.apply(system.auctions)
    result = await system.followed.apply(narrow)

    assert (result.counted, result.dropped) == (10, 20)
    assert await system.waiting() == 10


def test_a_sampler_samples_evenly_and_refills() -> None:
    sampler = ExampleSampler(per_second_max=2)

    assert sampler.sample(range(40), now_ms=1_000_000) == list(range(0, 40, 2))
    assert list(sampler.sample(range(4), now_ms=1_000_000)) == []
    assert list(sampler.sample(range(4), now_ms=1_001_000)) == [0, 2]


async def published(valkey: Valkey) -> bytes:
    blob = await valkey.get(MODEL)
    assert isinstance(blob, bytes)
    return blob


async def test_a_trainer_learns_and_publishes_while_it_is_the_owner(
    system: LearningSystem, valkey: Valkey
) -> None:
    await system.record(held(1), seen(1), clicked(1))
    system.clock.advance(WAIT + timedelta(minutes=1))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(system.trainer.run(stop))
        async with asyncio.timeout(60):
            while await valkey.get(MODEL) is None:  # noqa: ASYNC110 - another task's work
                await asyncio.sleep(0.01)
        stop.set()

    assert (system.trainer.clicked, system.trainer.ignored, system.trainer.failures) == (1, 0, 0)


async def test_a_trainer_that_is_not_the_owner_does_nothing(system: LearningSystem) -> None:
    async def lag(_: str) -> Lag:
        return system.lag

    idle = Trainer(system.store, system.publisher, system.clock, wait=WAIT, is_owner=lambda: False, lag=lag)
    await system.record(held(1), seen(1))
    system.clock.advance(WAIT + timedelta(minutes=1))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(idle.run(stop))
        await asyncio.sleep(0.1)
        stop.set()

    assert (idle.learner, await system.waiting()) == (None, 1)


@contextlib.contextmanager
def a_worker(database_url: str, redis_url: str) -> Generator[None]:
    environment = {
        **os.environ,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "WORKER_PORT": str(find_port()),
        "ADLOOM_LEARNING_WAIT_SECONDS": "1",
    }
    process = ForkedPopen(
        [sys.executable, "-m", "adloom.app.worker"], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.process
async def test_every_example_is_learned_once_although_workers_are_killed(
    system: LearningSystem, pool: Pool, database_url: str, redis_url: str
) -> None:
    offers, clicks = 3_000, 60

    async def examples() -> int:
        kept = await system.store.read_state()
        return Learner.decode(kept.state).progress.examples if kept.state else 0

    for start in range(0, offers, 500):
        numbers = range(start, start + 500)
        await system.followed.append(*map(held, numbers), *map(seen, numbers))
        await system.followed.append(*(clicked(number) for number in range(start, start + clicks // 6)))
    async with asyncio.timeout(90):
        for wanted in (1, offers // 2, offers):
            with a_worker(database_url, redis_url):
                while await examples() < wanted:  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
    kept = await system.store.read_state()
    assert kept.state is not None
    progress = Learner.decode(kept.state).progress

    assert (progress.examples, progress.clicks) == (offers, clicks)
    assert await pool.fetchval("SELECT count(*) FROM learning_waiting") == 0
