"""The bitmaps of candidates that are in time equal a check of every candidate, at any time."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from adloom.schedule.schedule_window import is_open
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.eligibility.schedule_mask import NEVER, build_schedule_mask
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Candidate
from adloom.serving.index.rows import AssignmentRow
from adloom.serving.index.steps import run_steps
from tests.support.catalogs import NOON, some_assignments
from tests.support.rows import a_snapshot, an_assignment_row

SECONDS = st.integers(-3 * 86_400, 3 * 86_400)


def is_in_time(candidate: Candidate, now: datetime) -> bool:
    timing = candidate.timing
    return timing is None or (
        (timing.starts_at is None or timing.starts_at <= now)
        and (timing.ends_at is None or now < timing.ends_at)
        and is_open(timing.schedule, now=now)
    )


@given(rows=some_assignments(), steps=st.lists(SECONDS, min_size=1, max_size=12), sort=st.booleans())
def test_the_bitmaps_equal_a_check_of_every_candidate_at_any_time(
    rows: list[AssignmentRow], steps: list[int], *, sort: bool
) -> None:
    placement = compile_index(a_snapshot(*rows, allow_partial_render=True)).by_slug[b"home"]
    states = PlacementStates()

    for seconds in sorted(steps) if sort else steps:
        now = NOON + timedelta(seconds=seconds)
        available = states.get(placement, now).available

        for mask, block in zip(available, placement.blocks, strict=True):
            found = [bool(mask >> position & 1) for position in range(len(block.candidates))]
            assert found == [is_in_time(one, now) for one in block.candidates]


def test_a_candidate_without_times_is_never_checked_again() -> None:
    placement = compile_index(a_snapshot(an_assignment_row())).by_slug[b"home"]

    mask = run_steps(build_schedule_mask(placement, now=NOON))

    assert placement.blocks[0].timed == ()
    assert mask.until == NEVER
