"""How long a child is silent, and what that means."""

from hypothesis import given
from hypothesis import strategies as st

from adloom.runtime.supervisor.liveness import (
    START_SECONDS_MAX,
    TICKS_COUNTED_MAX,
    Liveness,
    LivenessBounds,
    LivenessVerdict,
    judge,
    mark_continued,
    record_tick,
)

TICK = 0.5
OURS = LivenessBounds(tick_seconds=TICK, silent_seconds=1.5, frozen_seconds=5.0)
SERVER = LivenessBounds(tick_seconds=3.0, silent_seconds=3.0, frozen_seconds=60.0, continue_seconds=3.0)
RESPONDING = Liveness(has_responded=True)

elapsed = st.floats(min_value=0.0, max_value=1e6)
# Whether the child responds, and whether it is busy.
ticks = st.lists(st.tuples(elapsed, st.booleans(), st.booleans()), max_size=40)


def after(
    bounds: LivenessBounds, *, ticks: int, liveness: Liveness = RESPONDING, is_busy: bool = False
) -> Liveness:
    for _ in range(ticks):
        liveness = record_tick(
            liveness, bounds, elapsed_seconds=bounds.tick_seconds, is_responding=False, is_busy=is_busy
        )
    return liveness


def test_a_silent_child_is_frozen_at_its_bound_and_not_before() -> None:
    assert [judge(after(OURS, ticks=count), OURS) for count in (2, 3, 9, 10)] == [
        LivenessVerdict.RESPONDING,
        LivenessVerdict.SILENT,
        LivenessVerdict.SILENT,
        LivenessVerdict.FROZEN,
    ]


def test_a_child_that_starts_has_a_minute_for_its_first_sign() -> None:
    before, at = (
        after(OURS, ticks=int(seconds / TICK), liveness=Liveness())
        for seconds in (START_SECONDS_MAX - TICK, START_SECONDS_MAX)
    )

    assert (judge(before, OURS), judge(at, OURS)) == (LivenessVerdict.RESPONDING, LivenessVerdict.FROZEN)


def test_a_server_gets_one_sigcont_before_it_is_given_up() -> None:
    liveness = after(SERVER, ticks=1)

    assert judge(liveness, SERVER) is LivenessVerdict.CONTINUE
    assert judge(mark_continued(liveness), SERVER) is LivenessVerdict.SILENT
    assert judge(after(SERVER, ticks=19, liveness=mark_continued(liveness)), SERVER) is LivenessVerdict.FROZEN


def test_a_server_that_works_is_not_frozen_however_long_it_does_not_answer() -> None:
    assert judge(after(SERVER, ticks=10_000, is_busy=True), SERVER) is LivenessVerdict.RESPONDING


@given(ticks, elapsed)
def test_one_late_tick_freezes_nobody(before: list[tuple[float, bool, bool]], slept: float) -> None:
    # The machine slept, and all children with it: nothing is known of them until the next tick.
    liveness = Liveness()
    for seconds, is_responding, is_busy in before:
        liveness = record_tick(
            liveness, OURS, elapsed_seconds=seconds, is_responding=is_responding, is_busy=is_busy
        )

    late = record_tick(liveness, OURS, elapsed_seconds=slept, is_responding=False)

    assert late.silent_seconds - liveness.silent_seconds <= TICKS_COUNTED_MAX * TICK + 1e-6


@given(ticks)
def test_a_frozen_child_was_silent_for_at_least_the_ticks_of_its_bound(
    found: list[tuple[float, bool, bool]],
) -> None:
    liveness, unanswered, elapsed_sum = RESPONDING, 0, 0.0
    for seconds, is_responding, is_busy in found:
        liveness = record_tick(
            liveness, OURS, elapsed_seconds=seconds, is_responding=is_responding, is_busy=is_busy
        )
        unanswered = 0 if is_responding or is_busy else unanswered + 1
        elapsed_sum = 0.0 if is_responding or is_busy else elapsed_sum + seconds
        if judge(liveness, OURS) is LivenessVerdict.FROZEN:
            assert unanswered * TICKS_COUNTED_MAX * TICK >= OURS.frozen_seconds - 1e-6
            assert elapsed_sum >= OURS.frozen_seconds - 1e-6


@given(ticks)
def test_whoever_is_responding_is_not_silent(found: list[tuple[float, bool, bool]]) -> None:
    liveness = Liveness()
    for seconds, is_responding, is_busy in found:
        liveness = record_tick(
            liveness, SERVER, elapsed_seconds=seconds, is_responding=is_responding, is_busy=is_busy
        )
        if is_responding:
            assert liveness == RESPONDING
            assert judge(liveness, SERVER) is LivenessVerdict.RESPONDING
