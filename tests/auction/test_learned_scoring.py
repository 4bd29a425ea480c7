"""The scoring policy `learned`: its predictions, its upper bounds, and how a model is encoded."""

from array import array
from math import inf, nan
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adloom.auction import learned
from adloom.auction.bid import CTR_ONE
from adloom.auction.features import (
    SLOTS,
    find_ad_slots,
    find_banner_slots,
    find_placement_slots,
    find_slot,
    hash_banner,
    hash_slot,
    request_slots,
)
from adloom.auction.learned import LearnedScorer, LearnedScoring, VisitorKind
from adloom.auction.model import (
    Model,
    UnreadableModelError,
    decode_model,
    encode_model,
    round_up_to_bound,
)
from adloom.auction.score import HIGH_INTENT, Heuristic, Signals
from tests.support.for_each import for_each


class SomeAd(msgspec.Struct, frozen=True):
    placement_key: int = 1
    banner_key: int = 2
    campaign_key: int = 3
    format: str = "single_image"


def weights(**of: float) -> "array[float]":
    """Return the weights of features by name, with `_` for a blank."""
    made = array("f", bytes(SLOTS * 4))
    for name, weight in of.items():
        made[hash_slot(name.replace("_", " "))] = weight
    return made


def a_model(**fields: Any) -> Model:
    return msgspec.structs.replace(Model(version=7, weights=weights(), highest=2.0), **fields)


signals = st.builds(
    Signals,
    placement_type=st.sampled_from(["story", "banner", "feed"]),
    segment=st.sampled_from([None, HIGH_INTENT, "bargain"]),
    last_purchase_days=st.sampled_from([None, 3, 14, 15]),
    device=st.sampled_from([None, "mobile", "desktop"]),
    country=st.sampled_from([None, "FR", "IN"]),
    hour=st.none() | st.integers(0, 23),
)
ads = st.builds(SomeAd, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))


@given(signals, ads)
def test_a_model_without_weights_predicts_as_the_heuristic_does(request: Signals, ad: SomeAd) -> None:
    heuristic = Heuristic().build_scorer(request).predict_ctr(ad)

    assert LearnedScoring(a_model(highest=0.0)).build_scorer(request).predict_ctr(ad) == heuristic
    assert LearnedScoring().build_scorer(request).predict_ctr(ad) == heuristic


def test_without_a_model_every_ad_has_the_same_ctr_and_the_version_is_zero() -> None:
    policy = LearnedScoring()

    assert policy.version == 0
    assert policy.build_scorer(Signals(placement_type="feed")).is_uniform


@for_each(
    "feature",
    [
        "all",
        "device_mobile",
        "country_FR",
        "hour_9",
        "segment_None",
        "placement_1",
        "banner_2",
        "campaign_3",
        "placement_1_banner_2",
        "banner_2_device_mobile",
        "banner_2_segment_None",
        "placement_1_device_mobile",
        "placement_1_hour_9",
    ],
)
def test_every_feature_changes_the_odds(feature: str) -> None:
    request = Signals(placement_type="feed", device="mobile", country="FR", hour=9)
    policy = LearnedScoring(a_model(weights=weights(**{feature: 0.6931472})))

    # Twice the odds of 2 in 100.
    assert policy.build_scorer(request).predict_ctr(SomeAd()) == pytest.approx(CTR_ONE * 4 / 102, rel=1e-6)


def test_every_ctr_is_multiplied_by_the_calibration() -> None:
    request = Signals(placement_type="feed")

    assert (
        LearnedScoring(a_model(calibration=0.5)).build_scorer(request).predict_ctr(SomeAd()) == CTR_ONE // 100
    )


def test_a_ctr_is_above_zero_and_at_most_one() -> None:
    request = Signals(placement_type="feed")
    hopeless = LearnedScoring(a_model(weights=weights(banner_2=-1_000.0)))
    certain = LearnedScoring(a_model(weights=weights(banner_2=1_000.0), highest=1_000.0, calibration=2.0))

    assert hopeless.build_scorer(request).predict_ctr(SomeAd()) == 1
    assert certain.build_scorer(request).predict_ctr(SomeAd()) == CTR_ONE


def test_a_prediction_above_the_bound_is_cut_to_the_bound() -> None:
    scorer = LearnedScoring(a_model(weights=weights(banner_2=5.0), highest=0.5)).build_scorer(
        Signals(placement_type="feed")
    )

    assert scorer.predict_ctr(SomeAd()) == scorer.ctr_max < CTR_ONE // 10


@settings(deadline=None)
@given(
    request=signals,
    ad=ads,
    highest=st.floats(-3, 40),
    calibration=st.floats(0.5, 2.0),
    filler=st.lists(st.floats(-3, 3), min_size=13, max_size=13),
)
def test_no_ad_exceeds_the_bound(
    request: Signals, ad: SomeAd, highest: float, calibration: float, filler: list[float]
) -> None:
    made = weights()
    slots = (
        *request_slots(request.device, request.country, request.hour, request.segment),
        *find_ad_slots(ad.placement_key, ad.banner_key, ad.campaign_key),
        *find_banner_slots(ad.banner_key, request.device, request.segment),
        *find_placement_slots(ad.placement_key, request.device, request.hour),
    )
    for slot, weight in zip(slots, filler, strict=True):
        made[slot] = weight
    scorer = LearnedScoring(a_model(weights=made, highest=highest, calibration=calibration)).build_scorer(
        request
    )

    assert 1 <= scorer.predict_ctr(ad) <= scorer.ctr_max <= CTR_ONE


@given(st.integers(1, CTR_ONE))
def test_a_bound_is_at_most_26_per_cent_above_the_ctr(ctr: int) -> None:
    bound = round_up_to_bound(learned.Ctr(ctr))

    assert ctr <= bound
    assert bound <= max(ctr * 1.26, 2_000)


def test_an_evicted_scorer_predicts_the_same_when_it_is_built_again() -> None:
    policy = LearnedScoring(a_model(weights=weights(banner_2=0.3)))
    request = Signals(placement_type="feed")
    first = policy.build_scorer(request).predict_ctr(SomeAd())
    for number in range(learned.SCORERS_MAX + 1):
        policy.build_scorer(Signals(placement_type="feed", segment=f"{number}")).predict_ctr(SomeAd())

    assert policy.build_scorer(request).predict_ctr(SomeAd()) == first


def test_the_caches_of_kept_scorers_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "CACHED_MAX", 50)
    policy = LearnedScoring(a_model())
    kept = [policy.build_scorer(Signals(placement_type="feed", segment=f"{number}")) for number in range(20)]
    for banner in range(200):
        for scorer in kept:
            scorer.predict_ctr(SomeAd(banner_key=banner))

    cached = sum(len(scorer.cross_factors) for scorer in kept if isinstance(scorer, LearnedScorer))

    assert cached <= 50


def test_the_factor_of_a_kind_of_visitor_is_bounded() -> None:
    made = weights()
    slot, _ = find_banner_slots(2, "mobile", None)
    made[slot] = 3.0
    request = Signals(placement_type="feed", device="mobile")
    bold, careful = (
        LearnedScoring(a_model(weights=made, highest=3.0, crossing=crossing)).build_scorer(request)
        for crossing in (3.0, 0.1)
    )

    assert bold.predict_ctr(SomeAd()) > 5 * careful.predict_ctr(SomeAd())
    assert careful.predict_ctr(SomeAd()) > Heuristic().build_scorer(request).predict_ctr(SomeAd())


def test_frequent_kinds_of_visitors_are_found_once() -> None:
    policy = LearnedScoring(a_model())
    for times, segment in ((learned.FREQUENT, "often"), (learned.FREQUENT - 1, "seldom")):
        for _ in range(times):
            policy.build_scorer(Signals(placement_type="feed", segment=segment))

    kind = VisitorKind(None, "often")
    assert policy.find_frequent_kind() == kind
    policy.use_kind(kind)

    assert policy.find_frequent_kind() is None
    assert policy.kinds == [kind]


def test_a_model_is_decoded_as_it_was_encoded() -> None:
    written = a_model(
        weights=weights(banner_2=-0.25, banner_3=0.125),
        crossing=0.75,
        calibration=1.5,
        examples=12,
        learned_at=1e9,
        weight_max=0.25,
    )

    assert decode_model(encode_model(written)) == written


def test_slots_without_weights_take_few_bytes() -> None:
    assert len(encode_model(a_model())) < 6_000


@for_each(
    "blob",
    [
        b"",
        b"nonsense",
        encode_model(a_model())[:-10],
        msgspec.msgpack.encode([9, 1, 0.0, 1.0, 0, 0.0, b""]),
        encode_model(a_model(weights=weights(banner_2=nan))),
        encode_model(a_model(weights=weights(banner_2=inf))),
        encode_model(a_model(highest=nan)),
        encode_model(a_model(calibration=nan)),
    ],
)
def test_bytes_that_are_not_a_model_are_refused(blob: bytes) -> None:
    with pytest.raises(UnreadableModelError):
        decode_model(blob)


def test_the_slot_of_a_feature_never_changes() -> None:
    assert [hash_slot(feature) for feature in ("all", "banner 2", "hour 9")] == [71_884, 180_642, 174_930]


@given(st.integers(0, 2**62), st.none() | st.text(st.characters(exclude_categories=["Cs"])))
def test_a_feature_whose_beginning_is_hashed_has_the_same_slot(banner: int, value: str | None) -> None:
    begun = hash_banner(banner)
    ends = f"device {value}".encode(), f"segment {value}".encode()

    assert tuple(find_slot(begun, end) for end in ends) == find_banner_slots(banner, value, value)
