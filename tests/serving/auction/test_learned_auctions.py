"""Auctions over learned CTRs: the fast search finds the same winner as the reference auction."""

from random import Random

from adloom.auction.bid import Bid, BidType
from adloom.auction.learned import LEARNED, LearnedScoring
from adloom.auction.run import run_auction
from adloom.auction.score import Signals
from adloom.auction.training import Example, Learner
from adloom.core.money import Micros
from adloom.serving.index.bid_block import Bidder
from tests.serving.auction.marketplace import Marketplace, a_row, a_slot
from tests.support.for_each import for_each
from tests.support.rows import HOME_KEY

FEED = Signals(placement_type="feed")


def train_learned_policy(chance: Random, banners: int, examples: int) -> LearnedScoring:
    """Train a model on examples in which each banner has its own share of clicks."""
    learner, shares = Learner(), [chance.random() ** 3 / 4 for _ in range(banners)]
    for _ in range(examples):
        banner = chance.randrange(1, banners + 1)
        is_clicked = chance.random() < shares[banner - 1]
        learner.learn(Example(HOME_KEY, banner, banner, FEED, is_clicked=is_clicked))
    return LearnedScoring(learner.build_model(version=1, at=0.0))


def build_bid(one: Bidder, policy: LearnedScoring) -> Bid:
    return Bid(
        campaign_key=one.campaign_key,
        banner_key=one.banner_key,
        placement_key=one.placement_key,
        advertiser_key=one.payer if one.payer >= 0 else None,
        bid_type=one.bid_type,
        bid=one.bid,
        ctr=policy.build_scorer(FEED).predict_ctr(one),
        quality=one.quality,
        floor=one.floor,
    )


@for_each("seed", range(12))
def test_the_fast_auction_agrees_with_the_reference_auction_over_learned_ctrs(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - not a secret
    count = chance.choice([1, 5, 60, 900])
    policy = train_learned_policy(chance, count, chance.choice([0, 50, 1_500]))
    rows = [
        a_row(
            number,
            Micros(chance.randint(1, 400) * 10_000),
            bid_type=chance.choice([BidType.CPM, BidType.CPC, BidType.CPC]),
        )
        for number in range(1, count + 1)
    ]
    market = Marketplace(*rows, slots=[a_slot(scoring=LEARNED, floor="0.5")], policies={LEARNED: policy})
    bidders = [
        one
        for block in market.index.markets["feed"][0].blocks
        for one in block.candidates
        if isinstance(one, Bidder)
    ]
    plain = run_auction(build_bid(one, policy) for one in bidders)
    win = market.auction()

    assert len(bidders) == count
    if win is None:
        assert plain.winner is None
        return
    assert plain.winner is not None
    assert win.bidder.campaign_key == plain.winner.campaign_key
    assert (win.ecpm, win.final, win.charge) == (plain.ecpm, plain.final, plain.charge)


def test_an_ad_with_more_clicks_wins_over_one_with_an_equal_bid() -> None:
    learner = Learner()
    for number in range(600):
        learner.learn(Example(HOME_KEY, 1, 1, FEED))
        learner.learn(Example(HOME_KEY, 2, 2, FEED, is_clicked=number % 10 == 0))
    rows = [a_row(number, "1", bid_type=BidType.CPC) for number in (1, 2)]
    policy = LearnedScoring(learner.build_model(version=1, at=0.0))

    assert Marketplace(*rows, slots=[a_slot()]).winner() == 1
    assert Marketplace(*rows, slots=[a_slot(scoring=LEARNED)], policies={LEARNED: policy}).winner() == 2
