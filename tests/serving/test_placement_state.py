"""Answers are remembered for a while, and forgotten at once when they are not true any more."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from adloom.core.ids import BannerId
from adloom.serving.eligibility.eligible_set import Exclusions
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index
from adloom.serving.index.rows import AssignmentRow
from adloom.serving.index.steps import run_steps
from adloom.targeting.context import Context
from tests.support.contexts import a_context
from tests.support.rows import a_snapshot, an_assignment_row, an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
DE, FR = a_context(country="DE"), a_context(country="FR")


class Counter:
    """Serves one placement from states."""

    def __init__(self, *rows: AssignmentRow, **options: Any) -> None:
        self.index: Index = compile_index(a_snapshot(*rows))
        self.states = PlacementStates(**options)

    def ask(self, context: Context = DE, *, seconds: float = 0) -> list[int]:
        now = NOON + timedelta(seconds=seconds)
        state = self.states.get(self.index.by_slug[b"home"], now)
        offers = self.states.decide_offers(state, context, int(now.timestamp()))
        return [offer.candidate.banner_key for offer in offers]


def a_row(number: int, **fields: Any) -> AssignmentRow:
    return an_assignment_row(
        banner_id=BannerId(an_id(number)), banner_key=number, campaign_key=number, **fields
    )


def test_the_same_context_is_decided_once() -> None:
    counter = Counter(a_row(1))

    answers = [counter.ask(DE), counter.ask(DE), counter.ask(FR), counter.ask(msgspec.structs.replace(DE))]

    assert answers == [[1]] * 4
    assert (counter.states.hits, counter.states.misses) == (2, 2)


def test_segments_are_told_apart() -> None:
    counter = Counter(a_row(1))

    counter.ask(a_context(segment="gold"))
    counter.ask(a_context(segment=None))

    assert counter.states.misses == 2


def test_an_answer_is_remembered_for_its_time_only() -> None:
    counter = Counter(a_row(1), keep_seconds=10)

    for seconds in (0, 9, 10, 19):
        counter.ask(seconds=seconds)

    assert (counter.states.hits, counter.states.misses) == (2, 2)


def test_without_a_time_nothing_is_remembered() -> None:
    counter = Counter(a_row(1), keep_seconds=0)

    counter.ask()
    counter.ask()

    assert counter.states.hits == 0


def test_a_moment_that_comes_is_seen_at_its_second() -> None:
    counter = Counter(a_row(1, starts_at=NOON + timedelta(seconds=5)), a_row(2))

    assert [counter.ask(seconds=seconds) for seconds in (0, 4.999, 5, 6)] == [[2], [2], [1, 2], [1, 2]]
    assert counter.states.hits == 2


def test_an_exclusion_is_seen_at_once_and_ends_at_once() -> None:
    counter = Counter(a_row(1), a_row(2))
    seen = [counter.ask()]

    counter.states.exclude(Exclusions(campaigns={"impression_cap": frozenset({1})}))
    seen.append(counter.ask())
    counter.states.exclude(Exclusions())
    seen.append(counter.ask())

    assert seen == [[1, 2], [2], [1, 2]]


def test_answers_survive_exclusions_of_others() -> None:
    counter = Counter(a_row(1))
    counter.ask()

    counter.states.exclude(Exclusions(campaigns={"impression_cap": frozenset({99})}))
    counter.ask()

    assert counter.states.hits == 1


def test_a_placement_that_changed_is_decided_anew() -> None:
    counter = Counter(a_row(1))
    counter.ask()

    counter.index = compile_index(a_snapshot(a_row(2), version=2))

    assert counter.ask() == [2]


def test_a_shelf_may_be_prepared_before_its_index_is_there() -> None:
    counter = Counter(a_row(1))
    counter.ask()
    newer = compile_index(a_snapshot(a_row(2), version=2))
    state = run_steps(counter.states.prepare(newer.by_slug[b"home"], now=NOON))

    assert counter.ask() == [1]
    counter.states.install(newer, [state])
    counter.index = newer

    assert counter.ask() == [2]
    assert counter.states.get(newer.by_slug[b"home"], NOON) is state


def test_the_oldest_answers_go_when_there_are_too_many() -> None:
    counter = Counter(a_row(1), answers_max=3)

    for hour in (0, 1, 2, 3, 3, 1, 0):
        counter.ask(a_context(hour=hour))

    assert (counter.states.hits, counter.states.misses) == (2, 5)
