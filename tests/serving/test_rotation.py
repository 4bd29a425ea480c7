"""Banners of one display order take turns: by weight, or the better one wins; ordered placements stay as they were."""

import json
from collections import Counter
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st

from adloom.core.clock import ManualClock
from adloom.core.delivery import Rotation
from adloom.core.ids import BannerId, CampaignId, PlacementId, SystemIds
from adloom.events.ingest.token import TokenKeys
from adloom.market.results.window import NO_RESULTS, SiteResults
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.random import seed_chance
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.direct.model import ChosenOffer
from adloom.serving.eligibility.decide import decide, iter_eligible
from adloom.serving.eligibility.placement_state import PlacementState, PlacementStates
from adloom.serving.eligibility.rotation import Rotator, iter_tiers
from adloom.serving.eligibility.schedule_mask import build_schedule_mask
from adloom.serving.index.compile import compile_index, fill_order
from adloom.serving.index.index import Candidate, IndexedPlacement
from adloom.serving.index.rows import AssignmentRow, Snapshot
from adloom.serving.index.steps import run_steps
from adloom.targeting.context import Context
from tests.support.answers import at_once
from tests.support.catalogs import some_assignments
from tests.support.contexts import a_context, some_contexts
from tests.support.rows import a_placement_row, a_snapshot, an_assignment_row, an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
KEYS = TokenKeys("a secret of the tests, long enough to be one")
TIER = 3  # The parts of the fill order that weights do not change.


def a_row(number: int, **fields: Any) -> AssignmentRow:
    return an_assignment_row(
        title=str(number),
        banner_id=BannerId(an_id(number)),
        banner_key=number,
        campaign_key=number,
        campaign_id=CampaignId(an_id(1000 + number)),
        **fields,
    )


class RotatedPlacement:
    """Serves one placement whose candidates take turns."""

    def __init__(
        self, *rows: AssignmentRow, results: SiteResults = NO_RESULTS, seed: int = 1, **fields: Any
    ) -> None:
        fields = {"rotation": Rotation.WEIGHTED, "max_banners": 1, **fields}
        self.index = compile_index(a_snapshot(*rows, **fields))
        self.results = results
        self.states = PlacementStates(turns=Rotator(seed_chance(str(seed)), lambda _: self.results))

    @property
    def placement(self) -> IndexedPlacement:
        return self.index.by_slug[b"home"]

    @property
    def state(self) -> PlacementState:
        return self.states.get(self.placement, NOON)

    def ask(self, context: Context | None = None, *, seconds: int = 0) -> list[int]:
        offers = self.states.decide_offers(self.state, context or a_context(), seconds)
        return [offer.candidate.banner_key for offer in offers]

    def count(self, times: int) -> Counter[int]:
        return Counter(key for _ in range(times) for key in self.ask())


def compute_shares(weights: list[int]) -> list[float]:
    """Where nothing has a weight, all come equally often."""
    weights = weights if any(weights) else [1] * len(weights)
    return [weight / sum(weights) for weight in weights]


@given(weights=st.lists(st.integers(0, 100), min_size=1, max_size=5), seed=st.integers(0, 1_000))
@example(weights=[0, 0, 0], seed=1)
def test_shares_follow_weights(weights: list[int], seed: int) -> None:
    times = 1_000
    served = RotatedPlacement(*(a_row(n, weight=weight) for n, weight in enumerate(weights)), seed=seed)

    shown = served.count(times)

    for number, share in enumerate(compute_shares(weights)):
        spread = (share * (1 - share) / times) ** 0.5
        assert abs(shown[number] / times - share) <= 6 * spread, (number, shown)


@given(weights=st.lists(st.integers(0, 3), min_size=3, max_size=3), seed=st.integers(0, 100))
def test_the_second_slot_is_drawn_among_those_left(weights: list[int], seed: int) -> None:
    times = 1_000
    served = RotatedPlacement(*(a_row(n, weight=w) for n, w in enumerate(weights)), max_banners=2, seed=seed)

    seconds = Counter(served.ask()[1] for _ in range(times))

    firsts = compute_shares(weights)
    for number in range(3):
        share = 0.0
        for other in {0, 1, 2} - {number}:
            left = sorted({0, 1, 2} - {other})
            share += firsts[other] * compute_shares([weights[one] for one in left])[left.index(number)]
        assert abs(seconds[number] / times - share) <= 6 * (share * (1 - share) / times) ** 0.5


@given(
    rows=some_assignments(),
    context=some_contexts(),
    rotation=st.sampled_from((Rotation.WEIGHTED, Rotation.BEST)),
    slots=st.integers(1, 5),
    partial=st.booleans(),
    seed=st.integers(0, 100),
)
def test_turns_change_only_who_comes_first_within_a_tier(  # noqa: PLR0913 - all that it is for
    rows: list[AssignmentRow], context: Context, rotation: Rotation, slots: int, *, partial: bool, seed: int
) -> None:
    fields: dict[str, Any] = {"max_banners": slots, "allow_partial_render": partial}
    rotated = RotatedPlacement(*rows, rotation=rotation, seed=seed, **fields)
    placement, state = rotated.placement, rotated.state
    ordered = compile_index(a_snapshot(*rows, **fields)).by_slug[b"home"]
    eligible = list(iter_eligible(ordered, context, state.available))

    drawn = list(rotated.states.iter_in_turn(state, iter_eligible(placement, context, state.available)))

    assert sorted(map(_name, drawn)) == sorted(map(_name, eligible))
    tiers = {str(row.title): fill_order(row)[:TIER] for row in rows}
    assert [tiers[_name(one)] for one in drawn] == [tiers[_name(one)] for one in eligible]
    answer = rotated.ask(context)
    assert len(answer) == len(set(answer)) == min(slots, len({one.banner_key for one in eligible}))


@given(rows=some_assignments(), context=some_contexts(), slots=st.integers(1, 5))
def test_an_ordered_placement_is_filled_as_without_turns(
    rows: list[AssignmentRow], context: Context, slots: int
) -> None:
    served = RotatedPlacement(*rows, rotation=Rotation.ORDERED, max_banners=slots)
    placement = served.placement
    masks = run_steps(build_schedule_mask(placement, now=NOON)).masks

    assert placement.turns == {}
    assert served.ask(context) == [one.banner_key for one in decide(placement, context, masks)]
    assert served.state.pools == {}


def test_a_banner_of_two_campaigns_fills_one_slot() -> None:
    rows = [a_row(1), a_row(1, campaign_priority=1), a_row(2)]
    rows[1] = an_assignment_row(
        title="1",
        banner_id=BannerId(an_id(1)),
        banner_key=1,
        campaign_key=7,
        campaign_id=CampaignId(an_id(1007)),
    )
    served = RotatedPlacement(*rows, max_banners=3)

    assert {tuple(sorted(served.ask())) for _ in range(100)} == {(1, 2)}


def test_the_eligible_are_found_once_and_drawn_every_time() -> None:
    served = RotatedPlacement(a_row(1), a_row(2))

    shown = served.count(50)

    assert set(shown) == {1, 2}
    assert (served.states.hits, served.states.misses) == (49, 1)


def test_a_campaign_that_is_excluded_has_no_turn_at_once() -> None:
    served = RotatedPlacement(a_row(1), a_row(2))
    served.count(10)

    served.states.mark_changed({1: "budget"})
    without = served.count(20)
    served.states.mark_changed({1: None})

    assert set(without) == {2}
    assert set(served.count(50)) == {1, 2}


def test_the_better_banner_wins() -> None:
    results = SiteResults(1, {1: (20_000, 40), 2: (20_000, 120)}, 0.004)
    served = RotatedPlacement(a_row(1, weight=900), a_row(2), rotation=Rotation.BEST, results=results)

    assert served.count(500)[2] >= 490


def test_all_are_tried_while_nothing_is_known() -> None:
    served = RotatedPlacement(*(a_row(number) for number in range(4)), rotation=Rotation.BEST)

    shown = served.count(2_000)

    assert all(400 <= shown[number] <= 600 for number in range(4)), shown


def test_what_is_learned_counts_from_the_next_request_on() -> None:
    served = RotatedPlacement(a_row(1), a_row(2), rotation=Rotation.BEST)
    served.count(10)

    served.results = SiteResults(2, {1: (50_000, 500), 2: (50_000, 50)}, 0.005)

    assert served.count(100)[1] >= 99


def test_a_large_tier_takes_turns_among_its_first() -> None:
    rows = [a_row(number, weight=1) for number in range(1_200)]
    served = RotatedPlacement(*rows)

    [tier] = iter_tiers(
        served.placement.turns, iter_eligible(served.placement, a_context(), served.state.available)
    )

    assert len(tier.candidates) == 1_000


def _name(one: Candidate) -> str:
    return str(json.loads(b"{%b}" % one.creative)["title"])


# On pages.


def routes(*rows: AssignmentRow, placements: int, seed: int = 1) -> ServeRoutes:
    snapshot = Snapshot(
        version=1,
        placements=[
            a_placement_row(
                key=number,
                id=PlacementId(an_id(100 + number)),
                slug=f"p{number}",
                max_banners=1,
                rotation=Rotation.WEIGHTED,
            )
            for number in range(1, placements + 1)
        ],
        assignments=list(rows),
        banner_ids=[],
        campaign_ids=[],
    )
    index = compile_index(snapshot)
    states = PlacementStates(turns=Rotator(seed_chance(str(seed))))
    clock = ManualClock(NOON)
    return ServeRoutes(lambda: index, KEYS.signer, clock, SystemIds(), public_url="", states=states)


def ask_page(serve: ServeRoutes, *slugs: str) -> dict[str, list[str]]:
    body = json.dumps({"placements": slugs}).encode()
    page = json.loads(at_once(serve.serve_page(FastRequest(b"POST", b"/banners/serve", body=body))).body)
    return {slug: [one["title"] for one in answer["banners"]] for slug, answer in page["results"].items()}


@given(
    placements=st.integers(1, 4),
    banners=st.integers(1, 6),
    heavy=st.integers(1, 500),
    seed=st.integers(0, 100),
)
def test_no_banner_is_twice_on_a_page(placements: int, banners: int, heavy: int, seed: int) -> None:
    rows = [
        a_row(banner, placement_key=number, weight=heavy if banner == 0 else 10)
        for number in range(1, placements + 1)
        for banner in range(banners)
    ]
    serve = routes(*rows, placements=placements, seed=seed)
    slugs = [f"p{number}" for number in range(1, placements + 1)]

    for _ in range(10):
        shown = [title for titles in ask_page(serve, *slugs).values() for title in titles]

        assert len(shown) == placements
        assert len(set(shown)) == min(placements, banners)


def test_the_first_placement_of_a_page_keeps_its_shares() -> None:
    rows = [
        a_row(banner, placement_key=number, weight=weight)
        for number in (1, 2)
        for banner, weight in ((1, 90), (2, 10))
    ]
    serve = routes(*rows, placements=2)

    first = Counter(ask_page(serve, "p1", "p2")["p1"][0] for _ in range(1_000))

    assert 860 <= first["1"] <= 940, first


def test_a_visitor_without_script_gets_the_same_banner_behind_image_and_link() -> None:
    serve = routes(a_row(1, placement_key=1), a_row(2, placement_key=1), placements=1)

    def choose(address: str, *, is_shown: bool) -> UUID | bytes:
        request = FastRequest(b"GET", b"/f/p1.img", client=address)
        chosen = serve.choose_one(request, b"p1", is_shown=is_shown)
        assert isinstance(chosen, ChosenOffer)
        assert chosen.offer is not None
        return chosen.offer.candidate.pair

    addresses = [f"192.0.2.{number}" for number in range(40)]
    images = [choose(address, is_shown=True) for address in addresses]

    assert [choose(address, is_shown=False) for address in addresses] == images
    assert len(set(images)) == 2


def test_a_slot_that_cannot_be_held_goes_to_another_in_turn() -> None:
    served = RotatedPlacement(a_row(1), a_row(2), a_row(3, display_order=1))
    state = served.state

    drawn = served.states.iter_in_turn(state, iter_eligible(state.placement, a_context(), state.available))

    assert [one.banner_key for one in islice(drawn, 3)][2] == 3
