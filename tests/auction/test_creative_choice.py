from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.creative_choice import (
    EVIDENCE_WEIGHT,
    ChoiceMethod,
    ChoicePolicy,
    Contender,
    ScoredContender,
    draw_scores,
    prepare_contender,
    prepare_draws,
    rank,
)
from adloom.core.ids import AdvertiserId, BannerId, CampaignId
from adloom.core.money import Micros
from adloom.core.random import Chance
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.serving.contextual.decide import Eligible, SlotRules, price_winner
from adloom.serving.index.contextual import ContextualCreative

UNIT = 1_000_000
A_SLOT = SlotRules(
    domain="paper.test", width=None, height=None, floor=Micros(1), accepts_filler=False, bid_weight=0.5
)

contenders = st.lists(
    st.builds(
        Contender,
        bid=st.integers(1, 10**9).map(Micros),
        category_score=st.floats(0, 1),
        impressions=st.integers(0, 10**6) | st.integers(0, 12),
        clicks=st.integers(0, 10**6) | st.integers(0, 3),
    ),
    min_size=1,
    max_size=20,
)
policies = st.builds(
    ChoicePolicy,
    bid_weight=st.floats(0.1, 1),
    method=st.sampled_from(ChoiceMethod),
    click_rate=st.floats(0.0001, 0.2),
)


def seeded(seed: int) -> Chance:
    return Random(seed)  # noqa: S311 - no secret is made of it


def a_contender(
    cpm: float, *, impressions: int = 0, clicks: int = 0, category_score: float = 0.5
) -> Contender:
    return Contender(Micros(round(cpm * UNIT)), category_score, impressions, clicks)


def price_first(
    ranked: Sequence[ScoredContender], bids: Sequence[int], *, floor: int, bid_weight: float
) -> Micros:
    """Return what the first of a ranking pays; `bids` are in the order of the contenders, of different advertisers."""
    rules = msgspec.structs.replace(A_SLOT, floor=Micros(floor), bid_weight=bid_weight)
    eligible: Any = [
        SimpleNamespace(creative=SimpleNamespace(bid=bid), payer=place) for place, bid in enumerate(bids)
    ]
    return price_winner(ranked[0].position, [one.score for one in sorted(ranked)], eligible, rules)


@given(contenders, policies, st.integers(0, 1000))
def test_all_contenders_are_ranked_once_with_positive_engagement(
    given_ones: list[Contender], policy: ChoicePolicy, seed: int
) -> None:
    ranked = rank(given_ones, policy, seeded(seed))

    assert sorted(one.position for one in ranked) == list(range(len(given_ones)))
    assert all(0 < one.engagement <= 1.15 and one.score > 0 for one in ranked)


@given(contenders, policies, st.integers(0, 1000))
def test_the_same_seed_gives_the_same_choice(
    given_ones: list[Contender], policy: ChoicePolicy, seed: int
) -> None:
    assert rank(given_ones, policy, seeded(seed)) == rank(given_ones, policy, seeded(seed))


@given(contenders, policies, st.integers(0, 1000), st.integers(1, 10**9))
def test_the_price_is_between_the_floor_and_the_bid(
    given_ones: list[Contender], policy: ChoicePolicy, seed: int, floor: int
) -> None:
    ranked = rank(given_ones, policy, seeded(seed))
    bids = [one.bid for one in given_ones]
    bid = bids[ranked[0].position]
    floor = min(floor, bid)

    price = price_first(ranked, bids, floor=floor, bid_weight=policy.bid_weight)

    assert floor <= price <= bid


# Bids under a thousandth count as one.
LEAST = 1_000


@given(contenders, st.floats(0.1, 1), st.integers(0, 1000), st.integers(LEAST, 10**10))
def test_no_other_bid_gains_more_than_the_truth(
    rivals: list[Contender], bid_weight: float, seed: int, other_bid: int
) -> None:
    """With the same draws: whoever bids more than its value pays the same or loses money, less wins the same or nothing."""
    policy = ChoicePolicy(bid_weight=bid_weight)
    rivals = [one._replace(bid=Micros(max(one.bid, LEAST))) for one in rivals]
    value = rivals[0].bid

    def gain(bid: int) -> int:
        bidders = [rivals[0]._replace(bid=Micros(bid)), *rivals[1:]]
        ranked = rank(bidders, policy, seeded(seed))
        if ranked[0].position != 0:
            return 0
        return value - price_first(ranked, [one.bid for one in bidders], floor=1, bid_weight=bid_weight)

    rounding = 1 + value // 10**9
    assert gain(other_bid) <= max(gain(value), 0) + rounding


@pytest.mark.parametrize(
    ("bid", "losing", "expected"),
    [(8.0, 0.10, 4.00), (4.0, 0.10, 4.00), (8.0, 0.01, 0.50)],
    ids=["between", "capped by the bid", "raised to the floor"],
)
def test_the_second_price_is_adjusted_by_quality(bid: float, losing: float, expected: float) -> None:
    winner = ScoredContender(0, 0.05, 0.05 * bid**0.5)
    losers = [ScoredContender(1, 0.02, losing), ScoredContender(2, 0.02, losing / 2)]

    price = price_first([winner, *losers], [round(bid * UNIT), UNIT, UNIT], floor=UNIT // 2, bid_weight=0.5)

    assert price == round(expected * UNIT)


def test_a_higher_score_that_did_not_win_sets_no_price() -> None:
    newcomer, higher = ScoredContender(0, 0.01, 0.02), ScoredContender(1, 0.9, 0.9)

    price = price_first([newcomer, higher], [UNIT, UNIT], floor=100, bid_weight=0.5)

    assert price == 100


@given(st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_creatives_of_who_pays_for_the_winner_do_not_raise_its_price(
    names: list[str | None], chance: Random
) -> None:
    """A campaign of the house is alone: no other campaign is paid for by the same."""
    ones = [
        Eligible(
            ShortlistCandidate(
                banner_id=BannerId(UUID(int=number)),
                campaign_id=CampaignId(UUID(int=chance.randrange(2) if name is None else 7 + number)),
                advertiser_id=None if name is None else AdvertiserId(UUID(int=ord(name))),
                category="1",
                category_score=0.5,
                cpm=Micros(UNIT),
            ),
            cast("ContextualCreative", SimpleNamespace(bid=UNIT)),
        )
        for number, name in enumerate(names)
    ]
    scores = [chance.uniform(0.1, 1.0) for _ in ones]
    position = scores.index(max(scores))
    payers = [one.candidate.advertiser_id or one.candidate.campaign_id for one in ones]

    price = price_winner(position, scores, ones, A_SLOT)

    others = [score for score, payer in zip(scores, payers, strict=True) if payer != payers[position]]
    share = max(others, default=0.0) / scores[position]
    assert price == (round(UNIT * share**2) if others else A_SLOT.floor)


def test_more_clicks_than_impressions_do_not_win_everything() -> None:
    late, steady = a_contender(1, impressions=2, clicks=5), a_contender(1, impressions=1000, clicks=900)
    policy = ChoicePolicy(method=ChoiceMethod.LADDER)

    wins = sum(rank([late, steady], policy, seeded(seed))[0].position == 0 for seed in range(500))

    assert 0 < wins < 450


def test_the_ladder_shows_the_least_shown_while_all_have_few_impressions() -> None:
    few = [
        a_contender(9, impressions=9, clicks=9),
        a_contender(1, impressions=3),
        a_contender(5, impressions=0),
    ]
    policy = ChoicePolicy(method=ChoiceMethod.LADDER)

    assert [one.position for one in rank(few, policy, seeded(1))] == [2, 1, 0]


def test_the_ladder_gives_newcomers_their_share() -> None:
    known, newcomer = a_contender(1, impressions=1000, clicks=999), a_contender(1, category_score=0.0)
    policy = ChoicePolicy(method=ChoiceMethod.LADDER)

    wins = sum(rank([known, newcomer], policy, seeded(seed))[0].position == 1 for seed in range(2000))

    assert 0.25 < wins / 2000 < 0.35


def test_the_better_creative_wins_nearly_always_once_it_is_known() -> None:
    good = a_contender(1, impressions=50_000, clicks=500)
    bad = a_contender(1, impressions=50_000, clicks=50)

    wins = sum(rank([bad, good], ChoicePolicy(), seeded(seed))[0].position == 1 for seed in range(500))

    assert wins == 500


@given(contenders, policies, st.integers(0, 1000))
def test_positions_come_by_score_the_best_first(
    given_ones: list[Contender], policy: ChoicePolicy, seed: int
) -> None:
    policy = msgspec.structs.replace(policy, method=ChoiceMethod.INFORMED)
    ranked = rank(given_ones, policy, seeded(seed))

    assert sorted(one.position for one in ranked) == list(range(len(given_ones)))
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
    for one in ranked:
        weighted_bid, _ = prepare_contender(given_ones[one.position].bid, 0, bid_weight=policy.bid_weight)
        assert 0.0 <= one.engagement <= 1.0 + 1e-12
        assert one.score == pytest.approx(one.engagement * weighted_bid)


DRAWS = 6_000


@pytest.mark.parametrize(
    "known",
    [((0, 0), (0, 0), (0, 0)), ((400, 2), (400, 1), (50, 0)), ((5_000, 30), (6_000, 12), (20_000, 70))],
    ids=["nothing is known", "a little", "much"],
)
def test_the_winners_are_those_of_plain_beta_draws(known: tuple[tuple[int, int], ...]) -> None:
    """The formula that the prepared draws stand for: shares of winners differ by chance alone."""
    bids, chance = (2.0, 3.0, 2.5), seeded(7)
    policy = ChoicePolicy(click_rate=0.004)
    prepared = [prepare_contender(Micros(round(bid * UNIT)), 0.4, bid_weight=0.5) for bid in bids]
    ready = prepare_draws(prepared, known, policy)
    plain, fast = [0] * len(bids), [0] * len(bids)
    for _ in range(DRAWS):
        scores = [
            bid**0.5
            * chance.betavariate(
                EVIDENCE_WEIGHT * (clicks + 200 * 0.004 * 0.9),
                EVIDENCE_WEIGHT * (200 * 0.996 + max(0, impressions - clicks)),
            )
            for bid, (impressions, clicks) in zip(bids, known, strict=True)
        ]
        plain[scores.index(max(scores))] += 1
        fast[next(draw_scores(ready, chance).iter_best())] += 1

    # Four standard deviations of a difference of shares.
    for one, other in zip(plain, fast, strict=True):
        share = (one + other) / (2 * DRAWS)
        assert abs(one - other) / DRAWS <= 4 * (2 * share * (1 - share) / DRAWS) ** 0.5 + 1e-3


def test_what_is_known_weighs_more_than_chance_where_few_click() -> None:
    """At a click rate of .3 % and 2,000 impressions each, plain Thompson sampling would hardly tell these apart."""
    known = [Contender(Micros(UNIT), 0.5, 2_000, clicks) for clicks in (4, 6, 12)]
    shares: list[float] = []
    for weight in (1.0, EVIDENCE_WEIGHT):
        chance, policy = seeded(3), ChoicePolicy(click_rate=0.0036, evidence_weight=weight)
        wins = sum(rank(known, policy, chance)[0].position == 2 for _ in range(2_000))
        shares.append(wins / 2_000)

    plain, weighted = shares
    assert weighted > plain + 0.05
    assert weighted < 0.999, "others still get a turn"
