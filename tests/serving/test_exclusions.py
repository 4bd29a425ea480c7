"""Excluded campaigns: updates by campaign give the same result as a scan of all candidates."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from adloom.core.ids import BannerId, CampaignId
from adloom.serving.eligibility.decide import decide
from adloom.serving.eligibility.eligible_set import ExcludedCampaigns, Exclusions, remove_excluded
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.eligibility.schedule_mask import build_schedule_mask
from adloom.serving.index.compile import compile_index
from adloom.serving.index.rows import AssignmentRow
from adloom.serving.index.steps import run_steps
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX
from adloom.targeting.context import Context
from tests.support.catalogs import NOON, some_assignments
from tests.support.contexts import a_context, some_contexts
from tests.support.rows import HOME_KEY, a_snapshot, an_assignment_row, an_id

CAMPAIGNS = st.integers(1, 4)
REASONS = st.none() | st.sampled_from(("daily_budget", "pacing"))


def a_row(number: int, campaign: int) -> AssignmentRow:
    return an_assignment_row(
        banner_id=BannerId(an_id(number)),
        banner_key=number,
        campaign_key=campaign,
        campaign_id=CampaignId(an_id(100_000 + campaign)),
    )


def test_a_campaign_is_excluded_while_any_source_excludes_it() -> None:
    excluded = ExcludedCampaigns()

    flips = [
        excluded.change("budgets", {7: "pacing"}),
        excluded.replace("caps", Exclusions(campaigns={"impression_cap": frozenset({7, 8})})),
        excluded.change("budgets", {7: "daily_budget"}),
        excluded.change("budgets", {7: None}),
        excluded.replace("caps", Exclusions()),
        excluded.change("budgets", {7: None}),
    ]

    assert [sorted(one) for one in flips] == [[7], [8], [], [], [7, 8], []]


def test_the_newest_reason_is_returned() -> None:
    excluded = ExcludedCampaigns()

    excluded.change("budgets", {7: "budget_pending", 8: "pacing"})
    excluded.change("budgets", {7: "pacing"})

    assert [excluded.find_reason(key, ["budgets"]) for key in (7, 8)] == ["pacing", "pacing"]


@given(
    rows=some_assignments(most=12),
    steps=st.lists(
        st.tuples(
            st.dictionaries(CAMPAIGNS, REASONS, max_size=3),
            st.none() | st.frozensets(CAMPAIGNS),
            st.integers(0, 30),
            some_contexts(),
        ),
        max_size=12,
    ),
)
def test_incremental_marks_equal_a_scan_of_all_candidates(
    rows: list[AssignmentRow],
    steps: list[tuple[dict[int, str | None], frozenset[int] | None, int, Context]],
) -> None:
    """Budgets change some campaigns, caps replace all, time passes; every answer equals a new decision."""
    placement = compile_index(a_snapshot(*rows, max_banners=2, allow_partial_render=True)).by_slug[b"home"]
    states, now = PlacementStates(), NOON
    budgets: set[int] = set()
    caps: frozenset[int] = frozenset()
    contexts: list[Context] = []
    for changes, capped, hours, context in steps:
        states.mark_changed(changes)
        budgets = (budgets - changes.keys()) | {key for key, reason in changes.items() if reason}
        if capped is not None:
            caps = capped
            states.exclude(Exclusions(campaigns={"impression_cap": caps}))
        now += timedelta(hours=hours)
        contexts.append(context)

        state = states.get(placement, now)
        expected = remove_excluded(
            run_steps(build_schedule_mask(placement, now=now)).masks,
            placement,
            Exclusions(campaigns={"any": caps | budgets}),
        )

        assert tuple(state.available) == expected
        # Also for earlier contexts, whose answers may be cached.
        for context_again in contexts:
            offers = states.decide_offers(state, context_again, int(NOON.timestamp()))
            assert [offer.candidate for offer in offers] == decide(placement, context_again, expected)


def test_a_campaign_that_is_excluded_while_a_state_is_prepared_is_excluded_in_it() -> None:
    states = PlacementStates()
    index = compile_index(a_snapshot(a_row(1, 1), a_row(2, 2)))
    preparing = states.prepare(index.by_slug[b"home"], now=NOON)
    next(preparing)
    state = run_steps(preparing)

    states.mark_changed({1: "pacing"})
    states.install(index, [state])

    offers = states.decide_offers(states.get(index.by_slug[b"home"], NOON), a_context(), 0)
    assert [offer.candidate.banner_key for offer in offers] == [2]


def test_an_excluded_campaign_that_is_added_to_a_placement_is_excluded_there_too() -> None:
    states = PlacementStates()
    before, after = (
        compile_index(a_snapshot(a_row(2, 2))),
        compile_index(a_snapshot(a_row(1, 1), a_row(2, 2), version=2)),
    )
    states.get(before.by_slug[b"home"], NOON)
    states.mark_changed({1: "pacing"})

    states.install(after, [run_steps(states.prepare(after.by_slug[b"home"], now=NOON))])
    state = states.get(after.by_slug[b"home"], NOON)
    out = [offer.candidate.banner_key for offer in states.decide_offers(state, a_context(), 0)]
    states.mark_changed({1: None})
    back = [offer.candidate.banner_key for offer in states.decide_offers(state, a_context(), 0)]

    assert (out, back) == ([2], [1, 2])


def test_candidates_of_all_blocks_are_excluded_and_readmitted() -> None:
    rows = [a_row(number, number % 2) for number in range(BLOCK_CANDIDATES_MAX + 10)]
    placement = compile_index(a_snapshot(*rows, max_banners=3)).by_slug[b"home"]
    states = PlacementStates()
    state = states.get(placement, NOON)
    all_candidates = [block.everyone for block in placement.blocks]

    states.mark_changed({0: "pacing"})
    half = sum(mask.bit_count() for mask in state.available)
    states.mark_changed({0: None})

    assert half == len(rows) // 2
    assert state.available == all_candidates


def test_cached_answers_stay_when_campaigns_outside_them_change() -> None:
    rows = [a_row(number, number) for number in range(10)]
    placement = compile_index(a_snapshot(*rows, max_banners=2)).by_slug[b"home"]
    states = PlacementStates()
    state = states.get(placement, NOON)
    chosen = [offer.candidate.campaign_key for offer in states.decide_offers(state, a_context(), 0)]
    others = [number for number in range(10) if number not in chosen]

    for _ in range(3):
        states.mark_changed(dict.fromkeys(others, "pacing"))
        states.decide_offers(state, a_context(), 0)
        states.mark_changed(dict.fromkeys(others))
        states.decide_offers(state, a_context(), 0)

    assert (states.hits, states.misses) == (6, 1)


def test_requested_placements_are_returned_once() -> None:
    index = compile_index(a_snapshot(a_row(1, 1), a_row(2, 2)))
    states = PlacementStates()
    for _ in range(3):
        states.get(index.by_slug[b"home"], NOON)

    assert states.take_requested() == [HOME_KEY]
    assert states.take_requested() == []


def test_the_reason_of_an_excluded_campaign_is_known() -> None:
    states = PlacementStates()

    states.mark_changed({1: "pacing", 2: "daily_budget", 3: "pacing"})

    assert [states.find_reason(key) for key in (1, 2, 3, 4)] == ["pacing", "daily_budget", "pacing", None]
