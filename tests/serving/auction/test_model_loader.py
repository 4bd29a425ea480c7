"""A delivery process uses the newest model that it can decode."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime, timedelta

import pytest

from adloom.auction.bid import BidType
from adloom.auction.learned import FREQUENT, LEARNED
from adloom.auction.model import Model
from adloom.auction.score import Scoring, Signals
from adloom.auction.training import Example, Learner
from adloom.core.clock import ManualClock
from adloom.events.ctr.publish import MODEL, MODEL_NOTICES, ModelPublisher
from adloom.runtime.valkey import Valkey
from adloom.serving.auction.market import Markets, StrengthSource
from adloom.serving.background.model_loader import RANKED_MAX, ModelLoader
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.bid_block import BidBlock
from adloom.serving.index.steps import run_steps
from tests.auction.test_learned_scoring import SomeAd
from tests.serving.auction.marketplace import a_row, a_slot, an_index
from tests.support.eventually import eventually

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
FEED = Signals(placement_type="feed")
HEURISTIC = 20_000_000


def a_model(version: int) -> Model:
    learner = Learner()
    for _ in range(200):
        learner.learn(Example(1, 2, 3, FEED, is_clicked=True))
    return learner.build_model(version=version, at=NOW.timestamp())


@contextlib.asynccontextmanager
async def running_loader(valkey: Valkey) -> AsyncGenerator[ModelLoader]:
    loader, stop = ModelLoader(valkey, ManualClock(NOW + timedelta(minutes=1))), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(loader.run(stop))
        yield loader
        stop.set()


def test_a_loader_is_a_scoring_policy(valkey: Valkey) -> None:
    policy: Scoring = ModelLoader(valkey, ManualClock(NOW))

    assert policy.name == "learned"


async def test_a_loader_without_a_model_predicts_as_the_heuristic_does(valkey: Valkey) -> None:
    loader = ModelLoader(valkey, ManualClock(NOW))
    await loader.load()

    assert (loader.version, loader.measure_age_seconds()) == (0, 0.0)
    assert loader.build_scorer(FEED).predict_ctr(SomeAd()) == HEURISTIC


async def test_a_model_that_was_published_before_the_start_is_used(valkey: Valkey) -> None:
    await ModelPublisher(valkey).publish(a_model(3))
    async with running_loader(valkey) as loader:
        await eventually(lambda: loader.version == 3, seconds=30)

    assert loader.build_scorer(FEED).predict_ctr(SomeAd()) > HEURISTIC
    assert (loader.examples, loader.measure_age_seconds(), loader.loads) == (200, 60.0, 1)


async def test_a_model_is_used_as_soon_as_it_is_published(valkey: Valkey) -> None:
    async with running_loader(valkey) as loader:
        for version in (1, 2):
            await ModelPublisher(valkey).publish(a_model(version))
            await eventually(lambda version=version: loader.version == version, seconds=30)


async def test_ads_are_ranked_for_frequent_visitors_and_before_each_model_is_used(valkey: Valkey) -> None:
    rows = [a_row(number, "1", bid_type=BidType.CPC) for number in range(1, 4)]
    index = an_index(rows, a_slot(scoring=LEARNED))
    ((block,),) = [placement.blocks for placement in index.by_key.values()]
    assert isinstance(block, BidBlock)
    loader = ModelLoader(valkey, ManualClock(NOW))
    markets = Markets(PlacementStates(), policies={LEARNED: loader})
    loader.set_ranker(markets.rank)
    markets.install(run_steps(markets.prepare(index, now=NOW)))

    await ModelPublisher(valkey).publish(a_model(1))
    await loader.load()
    assert set(block.rankings) == set(loader.strengths)
    for _ in range(FREQUENT):
        loader.build_scorer(FEED)
    await loader.rank_frequent_kinds()
    assert set(block.rankings) == set(loader.strengths)
    assert len(loader.strengths) == 2

    first = loader.strengths
    await ModelPublisher(valkey).publish(a_model(2))
    await loader.load()
    assert set(block.rankings) == {*first, *loader.strengths}
    assert len(loader.strengths) == 2
    assert all(one.is_retired for one in first)


async def test_a_market_that_has_grown_leaves_no_unused_rankings(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = an_index([a_row(1, "1", bid_type=BidType.CPC)], a_slot(scoring=LEARNED))
    ((block,),) = [placement.blocks for placement in index.by_key.values()]
    assert isinstance(block, BidBlock)
    loader = ModelLoader(valkey, ManualClock(NOW))
    markets = Markets(PlacementStates(), policies={LEARNED: loader})
    loader.set_ranker(markets.rank)
    markets.install(run_steps(markets.prepare(index, now=NOW)))
    await ModelPublisher(valkey).publish(a_model(1))
    await loader.load()
    for segment in ("a", "b"):
        for _ in range(FREQUENT):
            loader.build_scorer(Signals(placement_type="feed", segment=segment))
    await loader.rank_frequent_kinds()
    first = loader.strengths
    assert len(first) == 3

    monkeypatch.setattr("adloom.serving.background.model_loader.RANKED_MAX", 1)
    await ModelPublisher(valkey).publish(a_model(2))
    await loader.load()

    assert len(loader.strengths) == 2
    assert set(block.rankings) == {*first, *loader.strengths}


async def test_kinds_of_visitors_are_ranked_again_after_a_failure(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adloom.serving.background.model_loader.RANK_SECONDS", 0.01)
    await ModelPublisher(valkey).publish(a_model(1))
    async with running_loader(valkey) as loader:
        await eventually(lambda: loader.version == 1, seconds=30)
        loader.set_ranker(failing)
        for _ in range(FREQUENT):
            loader.build_scorer(FEED)
        await eventually(lambda: loader.failures > 1, seconds=30)
        loader.set_ranker(lambda _, known: pretend_to_rank(known, bids=1))
        await eventually(lambda: len(loader.strengths) == 2, seconds=30)


def failing(scoring: str, known: StrengthSource) -> Generator[None, None, int]:
    """Fail to rank."""
    raise RuntimeError(f"{scoring}: {known()}")
    yield


async def test_a_market_with_very_many_bids_is_ranked_for_few_kinds_of_visitors(valkey: Valkey) -> None:
    loader = ModelLoader(valkey, ManualClock(NOW))
    loader.set_ranker(lambda _, known: pretend_to_rank(known, bids=RANKED_MAX // 2))
    await ModelPublisher(valkey).publish(a_model(1))
    await loader.load()
    for segment in ("a", "b", "c"):
        for _ in range(FREQUENT):
            loader.build_scorer(Signals(placement_type="feed", segment=segment))

    await loader.rank_frequent_kinds()

    assert len(loader.strengths) == 1 + 2


def pretend_to_rank(known: StrengthSource, *, bids: int) -> Generator[None, None, int]:
    """Rank nothing, and return the number of bids."""
    yield
    assert known()
    return bids


async def test_a_loader_can_be_cancelled_at_any_step(valkey: Valkey) -> None:
    model = a_model(1)
    for step in range(10):
        running = asyncio.ensure_future(ModelLoader(valkey, ManualClock(NOW)).run(asyncio.Event()))
        await ModelPublisher(valkey).publish(model)
        await asyncio.sleep(0.0005 * step)
        running.cancel()
        done, _ = await asyncio.wait([running], timeout=5)

        assert done


@pytest.mark.parametrize("blob", [b"", b"nonsense"])
async def test_an_unreadable_model_leaves_the_last_one_in_use(valkey: Valkey, blob: bytes) -> None:
    await ModelPublisher(valkey).publish(a_model(3))
    async with running_loader(valkey) as loader:
        await eventually(lambda: loader.version == 3, seconds=30)
        await valkey.set(MODEL, blob)
        await valkey.publish(MODEL_NOTICES, "4")
        await eventually(lambda: loader.failures == 1, seconds=30)

    assert loader.version == 3
