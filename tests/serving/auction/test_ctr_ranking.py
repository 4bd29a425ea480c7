"""Ranked bids: the search over rankings finds the same result as predicting the CTR of every bid."""

from array import array
from random import Random
from typing import Any

import numpy as np
import pytest

from adloom.auction.bid import BidType, Ctr, OwnBids
from adloom.auction.features import SLOTS
from adloom.auction.learned import LEARNED, LearnedScorer, LearnedScoring, VisitorKind
from adloom.auction.model import LOGIT_MAX, Model, find_weight_max
from adloom.auction.score import Signals
from adloom.core.money import Micros
from adloom.serving.auction.bid_record import AuctionInput
from adloom.serving.auction.funnel import AuctionFunnel, build_funnel
from adloom.serving.auction.market import Market, Markets
from adloom.serving.auction.result_cache import DecidedAuction
from adloom.serving.auction.scan_plan import TOP_BIDS_MAX
from adloom.serving.auction.strongest import STRONGEST_MAX, find_strongest
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.bid_block import BidBlock
from adloom.serving.index.index import Index
from adloom.serving.index.rows import AssignmentRow
from adloom.serving.index.steps import run_steps
from tests.serving.auction.marketplace import NOON, a_row, a_slot, an_index
from tests.support.contexts import a_context
from tests.support.for_each import for_each

SLOTS_KEYS = (1, 2, 3)
Result = tuple[object, AuctionFunnel]


def draw_weights(chance: Random, spread: float) -> "array[float]":
    """Draw the weights of a model; by NumPy, because there are 262,144."""
    drawn = np.random.default_rng(chance.randrange(2**32)).normal(0, spread, SLOTS)
    return array("f", drawn.astype(np.float32).tobytes())


def a_model(chance: Random, **fields: Any) -> LearnedScoring:
    spread = chance.choice([0.02, 0.1, 0.5])
    weights = draw_weights(chance, spread)
    values: dict[str, Any] = {
        "version": 1,
        "weights": weights,
        "highest": chance.choice([0.0, 4 * spread, 12 * spread]),
        "crossing": chance.choice([0.0, spread, 6 * spread, 30.0]),
        "calibration": chance.choice([0.5, 1.0, 2.0]),
        "weight_max": chance.choice([find_weight_max(weights), LOGIT_MAX]),
    }
    kinds = [VisitorKind("mobile", None), VisitorKind("desktop", "high-intent")]
    return LearnedScoring(Model(**values | fields), kinds=kinds[: chance.randrange(3)])


def some_rows(chance: Random, count: int) -> list[AssignmentRow]:
    return [
        a_row(
            number,
            Micros(chance.randint(1, 300) * chance.choice([100, 10_000])),
            bid_type=chance.choice([BidType.CPM, BidType.CPC, BidType.CPC, BidType.CPC]),
            placement_key=chance.choice(SLOTS_KEYS),
            advertiser_key=chance.choice([None, 1, number % 7]),
            banner_key=number % 200 + 1,
        )
        for number in range(1, count + 1)
    ]


class LearnedMarket:
    """Auctions with one learned policy, with or without rankings."""

    def __init__(  # noqa: PLR0913 - the sizes too
        self,
        index: Index,
        policy: LearnedScoring,
        own_bids: OwnBids,
        *,
        is_ranked: bool,
        top_max: int = TOP_BIDS_MAX,
        strongest_max: int = STRONGEST_MAX,
    ) -> None:
        self.index = index
        self.states = PlacementStates()
        self.markets = Markets(
            self.states, policies={LEARNED: policy}, own_bids=own_bids, strongest_max=strongest_max
        )
        self.early = 0  # Auctions that were decided among the strongest bids alone.
        if is_ranked:
            self.markets.install(run_steps(self.markets.prepare(index, now=NOON, bidders_max=top_max)))

    def run(self, chance: Random, signals: Signals, slug: str | None) -> Result:
        market = self.find_market(slug)
        scorers = self.markets.build_scorers(market, signals)
        contexts = [a_context()] * len(market.zones)
        absent = {
            "seen_enough": frozenset(chance.sample(range(1, 200), chance.choice([0, 60]))),
            "unreserved": frozenset(chance.sample(range(1, 200), chance.choice([0, 60]))),
        }
        win, scanned = self.markets.decide(market, contexts, scorers, **absent)
        self.early += bool(win) and not scanned
        field = build_funnel(
            market.plan_scan(scorers), contexts, scorers, bids_max=chance.choice([1, 20, 256]), **absent
        )
        result = win and (win.bidder.seniority, win.ecpm, win.second, win.final, win.charge)
        return result, field

    def find_market(self, slug: str | None) -> Market:
        if slug is None:
            market = self.markets.find_by_type(self.index, "feed", now=NOON)
        else:
            market = self.markets.find_by_slug(self.index, slug.encode(), now=NOON)
        assert market is not None
        return market


def blocks_of(index: Index) -> list[BidBlock]:
    return [
        block
        for placement in index.by_key.values()
        for block in placement.blocks
        if isinstance(block, BidBlock)
    ]


@pytest.mark.slow
@for_each("seed", range(24))
def test_ranked_bids_give_the_same_winner_price_and_funnel_as_all_bids(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - not a secret
    policy, own_bids = a_model(chance), chance.choice(list(OwnBids))
    slots = [a_slot(key, floor=chance.choice(["0", "0", "0.5", "4"]), scoring=LEARNED) for key in SLOTS_KEYS]
    rows = some_rows(chance, chance.choice([3, 60, 900]))
    # Rankings are in the blocks, so each market has blocks of its own.
    ranked, plain = (
        LearnedMarket(an_index(rows, *slots), policy, own_bids, is_ranked=is_ranked)
        for is_ranked in (True, False)
    )

    assert not any(block.rankings for block in blocks_of(plain.index))
    for number in range(25):
        signals = Signals(
            placement_type="feed",
            segment=chance.choice([None, "high-intent", f"segment {number}"]),
            device=chance.choice(["mobile", "desktop"]),
            hour=chance.randrange(24),
        )
        slug = chance.choice([None, *(f"slot-{key}" for key in SLOTS_KEYS)])
        run_seed = chance.random()
        assert ranked.run(Random(run_seed), signals, slug) == plain.run(Random(run_seed), signals, slug)  # noqa: S311 - not a secret


@pytest.mark.slow
@for_each("seed", range(24))
def test_the_strongest_bids_give_the_same_result_as_all_bids_while_campaigns_come_and_go(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - not a secret
    policy, own_bids = a_model(chance), chance.choice(list(OwnBids))
    zones = chance.choice([["UTC"] * 3, ["Asia/Kolkata"] * 3])
    slots = [
        a_slot(key, floor=chance.choice(["0", "0", "0.5"]), scoring=LEARNED, timezone=zone)
        for key, zone in zip(SLOTS_KEYS, zones, strict=True)
    ]
    count = chance.choice([60, 900])
    rows = some_rows(chance, count)
    sizes = {"top_max": chance.choice([1, 9]), "strongest_max": chance.choice([2, 24, 300, STRONGEST_MAX])}
    strong, plain = (
        LearnedMarket(an_index(rows, *slots), policy, own_bids, is_ranked=is_ranked, **sizes)
        for is_ranked in (True, False)
    )
    for number in range(25):
        out = {key: chance.choice([None, "daily_budget"]) for key in chance.sample(range(1, count + 1), 20)}
        bids = {key: chance.choice([0.3, 0.9, 1.0]) for key in chance.sample(range(1, count + 1), 20)}
        signals = Signals(
            placement_type="feed",
            segment=chance.choice([None, "high-intent", f"segment {number}"]),
            device=chance.choice([None, "mobile", "desktop", "console"]),
            hour=chance.randrange(24),
        )
        run_seed, results = chance.random(), list[Result]()
        for market in (strong, plain):
            market.states.mark_changed(out)
            market.states.set_multipliers(bids)
            results.append(market.run(Random(run_seed), signals, None))  # noqa: S311 - not a secret
        assert results[0] == results[1]
    assert not plain.early
    if sizes["strongest_max"] == STRONGEST_MAX:
        assert strong.early


def test_a_result_of_the_strongest_bids_is_stale_once_one_of_them_goes() -> None:
    chance = Random(6)  # noqa: S311 - not a secret
    policy = LearnedScoring(Model(version=1, weights=draw_weights(chance, 0.1), highest=1.0, crossing=0.4))
    index = an_index(some_rows(chance, 300), *(a_slot(key, scoring=LEARNED) for key in SLOTS_KEYS))
    learned = LearnedMarket(index, policy, OwnBids.IGNORE, is_ranked=True, top_max=9)
    market = learned.find_market(None)
    scorers = learned.markets.build_scorers(market, Signals(placement_type="feed"))
    win, scanned = learned.markets.decide(market, [a_context()], scorers)
    assert win is not None
    assert scanned == 0
    auction_input = AuctionInput(market.plan_scan(scorers), (a_context(),), scorers)
    auction = DecidedAuction(
        win, market, auction_input, scanned=scanned, strongest=market.find_strongest(scorers)
    )
    changes = learned.markets.change_counter

    assert auction.is_fresh(changes.count)
    learned.states.mark_changed({win.bidder.campaign_key: "daily_budget"})
    assert not auction.is_fresh(changes.count)


def test_the_strongest_bids_follow_the_model_and_a_retired_model_has_none() -> None:
    chance = Random(7)  # noqa: S311 - not a secret
    index = an_index(some_rows(chance, 300), *(a_slot(key, scoring=LEARNED) for key in SLOTS_KEYS))
    first, second, third = (a_model(chance, version=number) for number in (1, 2, 3))
    learned = LearnedMarket(index, first, OwnBids.IGNORE, is_ranked=True, top_max=9)
    (top,) = learned.find_market(None).top_bids

    assert set(top.strongest) == {first}
    run_steps(learned.markets.rank(LEARNED, lambda: second.strengths))
    assert set(top.strongest) == {first, second}
    first.retire()
    run_steps(learned.markets.rank(LEARNED, lambda: third.strengths))
    assert set(top.strongest) == {second, third}
    kind = third.build_for_kind(VisitorKind("tablet", "new"))
    run_steps(learned.markets.rank(LEARNED, lambda: (kind,)))
    assert {kind, *third.strengths} <= set(find_strongest(top))
    steps = learned.find_market(None).find_strongest([third.build_scorer(Signals(placement_type="feed"))])
    assert [step.eligible_set for step in steps] == [top.strongest[third]]


@for_each("seed", range(12))
def test_every_ctr_is_within_the_span_of_its_strength(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - not a secret
    policy = a_model(chance)
    index = an_index(some_rows(chance, 300), *(a_slot(key, scoring=LEARNED) for key in SLOTS_KEYS))
    for number in range(10):
        signals = Signals(placement_type="story", segment=f"s{number}", device="mobile", hour=number)
        ctr_max, scorer = policy.build_scorer(signals).ctr_max, policy.build_scorer(signals).ranked
        assert scorer is not None
        for block in blocks_of(index):
            span = scorer.compute_span(block.placement_keys)
            for one in block.bidders:
                strength = policy.compute_strength(one)
                ctr = scorer.predict_from_strength(one, strength)
                assert ctr <= strength * span.high + 1
                assert ctr >= min(ctr_max, strength * span.low - 1)


@pytest.mark.parametrize(("kinds", "predictions_max"), [([], 200), ([VisitorKind(None, None)], 20)])
def test_the_ctr_of_few_of_many_bids_is_predicted(
    kinds: list[VisitorKind], predictions_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(3)  # noqa: S311 - not a secret
    weights = draw_weights(chance, 0.1)
    model = Model(version=1, weights=weights, highest=1.0, crossing=0.4, weight_max=find_weight_max(weights))
    policy = LearnedScoring(model, kinds=kinds)
    index = an_index(some_rows(chance, 3_000), *(a_slot(key, scoring=LEARNED) for key in SLOTS_KEYS))
    market = LearnedMarket(index, policy, OwnBids.IGNORE, is_ranked=True)
    predicted: list[int] = []
    predict = LearnedScorer.predict_from_factor

    def counted(self: LearnedScorer, placement: int, factor: float) -> Ctr:
        predicted.append(placement)
        return predict(self, placement, factor)

    monkeypatch.setattr(LearnedScorer, "predict_from_factor", counted)
    scorer = policy.build_scorer(Signals(placement_type="feed"))
    win, _ = market.markets.decide(market.find_market(None), [a_context()], [scorer])

    assert win is not None
    assert len(predicted) < predictions_max


def test_rankings_of_a_retired_model_are_dropped() -> None:
    chance = Random(4)  # noqa: S311 - not a secret
    index = an_index(some_rows(chance, 10), *(a_slot(key, scoring=LEARNED) for key in SLOTS_KEYS))
    first, second, third = (a_model(chance, version=number) for number in (1, 2, 3))
    market = LearnedMarket(index, first, OwnBids.IGNORE, is_ranked=True)
    ranked = [block for block in blocks_of(index) if block.rankings]

    assert ranked
    run_steps(market.markets.rank(LEARNED, lambda: second.strengths))
    assert all(set(block.rankings) == {*first.strengths, *second.strengths} for block in ranked)
    first.retire()
    run_steps(market.markets.rank(LEARNED, lambda: third.strengths))
    assert all(set(block.rankings) == {*second.strengths, *third.strengths} for block in ranked)


def test_a_visitor_kind_that_is_added_while_bids_are_ranked_is_ranked_too() -> None:
    chance = Random(5)  # noqa: S311 - not a secret
    index = an_index(some_rows(chance, 200), *(a_slot(key, scoring=LEARNED) for key in SLOTS_KEYS))
    policy = LearnedScoring(Model(version=1, weights=array("f", bytes(4 * SLOTS))))
    market = LearnedMarket(index, policy, OwnBids.IGNORE, is_ranked=False)

    steps = market.markets.prepare(index, now=NOON)
    for _ in steps:
        if not policy.kinds and any(block.rankings for block in blocks_of(index)):
            policy.use_kind(VisitorKind("mobile", None))

    assert policy.kinds
    assert all(set(block.rankings) == set(policy.strengths) for block in blocks_of(index))
