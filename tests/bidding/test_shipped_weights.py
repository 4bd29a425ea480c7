"""The weights in the package are whole, say where they come from, and win on days that nobody trained on."""

import msgspec
import pytest

from adloom.bidding.dqn import SHAPES as DQN_SHAPES
from adloom.bidding.network import SHAPES as FLEET_SHAPES
from adloom.bidding.shipped import build_nets, load_nets, read_shipped
from adloom.bidding.training.market_days import generate_days
from adloom.bidding.training.replay import Replayed, replay
from adloom.bidding.weights import WeightsCard, WeightsError, decode_weights, encode_weights, read_card
from adloom.bidding.weights_card import find_doubt
from adloom.bidding.window import BidRules, BidStrategy
from adloom.catalog.campaign.model import check_strategy
from adloom.core.errors import ValidationFailedError

SHIPPED = {
    "fleet": "aad8af765e0b3bfe35dfe0048eee1867e1f1e1d4685878341d767c5fea484374",
    "dqn": "9207cf7a7db4d6229729322ff5672a6f8fc9350d26d48aaecb425abea77781e3",
}


@pytest.mark.parametrize("kind", SHIPPED)
def test_they_are_those_of_their_hash_and_card(kind: str) -> None:
    card = read_card(read_shipped(kind) or b"")

    assert (card.kind, card.sha256) == (kind, SHIPPED[kind])
    assert card.train_days == tuple(range(18))
    assert card.held_out_days == tuple(range(18, 24))


def test_their_cards_say_what_was_promised() -> None:
    fleet, dqn = (read_card(read_shipped(kind) or b"").scores for kind in ("fleet", "dqn"))

    assert fleet["without guard"] >= 0.87
    assert fleet["with guard"] >= 0.81
    assert fleet["with guard, over target"] <= 0.12
    assert dqn["with guard"] >= 0.70


def test_on_synthetic_days_fleet_wins_and_the_guard_keeps_the_target() -> None:
    days, nets = generate_days(days=3, seats=6, seed=11), load_nets()

    def share(strategy: BidStrategy, *, has_guard: bool = True) -> tuple[float, Replayed]:
        found = replay(days, strategy, nets, rules=BidRules(has_guard=has_guard))
        return float(found.score.sum() / days.best_score.sum()), found

    fixed, _ = share(BidStrategy.FIXED)
    free, _ = share(BidStrategy.FLEET, has_guard=False)
    guarded, played = share(BidStrategy.FLEET)
    agent, _ = share(BidStrategy.DQN)

    assert free >= guarded - 1e-3
    assert guarded > fixed
    assert agent > 0.9 * fixed
    assert played.over <= 0.12
    assert played.spent <= 1.0
    assert set(played.reasons) <= {"fleet", "guard"}
    assert (free, guarded, agent) == pytest.approx((0.9948, 0.9953, 0.9548), abs=2e-3)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"x", "no weights file"),
        (b"adloom-weights 1\n{}\n", "the card cannot be read"),
        ((read_shipped("dqn") or b""), "weights of 'dqn'"),
        ((read_shipped("fleet") or b"")[:-4], "not those of their hash"),
    ],
    ids=["other file", "no card", "other kind", "cut"],
)
def test_what_is_not_a_weights_file_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(WeightsError, match=why):
        decode_weights(data, "fleet", FLEET_SHAPES)


def test_weights_are_read_as_they_were_written() -> None:
    card, arrays = decode_weights(read_shipped("dqn") or b"", "dqn", DQN_SHAPES)

    again = encode_weights(
        WeightsCard(**{name: getattr(card, name) for name in card.__struct_fields__}), arrays
    )

    assert again == read_shipped("dqn")


def test_an_agent_that_was_never_trained_is_refused_and_the_sentence_says_why() -> None:
    data = read_shipped("dqn")
    assert data is not None
    card, arrays = decode_weights(data, "dqn", DQN_SHAPES)
    cold = encode_weights(msgspec.structs.replace(card, steps=0), arrays)

    assert find_doubt(data, "dqn") is None
    assert find_doubt(cold, "dqn") == "weights: never trained"
    assert find_doubt(data[:-1], "dqn") == "weights: not those of their hash"
    assert find_doubt(None, "dqn") == "weights missing"
    assert build_nets(None, cold).dqn == "weights: never trained"
    check_strategy(BidStrategy.DQN, lambda kind: find_doubt(data, kind))
    with pytest.raises(ValidationFailedError, match="with real money"):
        check_strategy(BidStrategy.DQN, lambda kind: find_doubt(cold, kind))
