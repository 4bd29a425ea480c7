"""Cached answers of a placement: kept for a while, and dropped as soon as they are no longer true."""

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


class PlacementServer:
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
    server = PlacementServer(a_row(1))

    answers = [server.ask(DE), server.ask(DE), server.ask(FR), server.ask(msgspec.structs.replace(DE))]

    assert answers == [[1]] * 4
    assert (server.states.hits, server.states.misses) == (2, 2)


def test_contexts_with_different_segments_are_decided_separately() -> None:
    server = PlacementServer(a_row(1))

    server.ask(a_context(segment="gold"))
    server.ask(a_context(segment=None))

    assert server.states.misses == 2


def test_an_answer_is_cached_for_keep_seconds() -> None:
    server = PlacementServer(a_row(1), keep_seconds=10)

    for seconds in (0, 9, 10, 19):
        server.ask(seconds=seconds)

    assert (server.states.hits, server.states.misses) == (2, 2)


def test_nothing_is_cached_if_keep_seconds_is_zero() -> None:
    server = PlacementServer(a_row(1), keep_seconds=0)

    server.ask()
    server.ask()

    assert server.states.hits == 0


def test_a_campaign_starts_at_its_second() -> None:
    server = PlacementServer(a_row(1, starts_at=NOON + timedelta(seconds=5)), a_row(2))

    assert [server.ask(seconds=seconds) for seconds in (0, 4.999, 5, 6)] == [[2], [2], [1, 2], [1, 2]]
    assert server.states.hits == 2


def test_an_exclusion_and_its_end_change_the_next_answer() -> None:
    server = PlacementServer(a_row(1), a_row(2))
    seen = [server.ask()]

    server.states.exclude(Exclusions(campaigns={"impression_cap": frozenset({1})}))
    seen.append(server.ask())
    server.states.exclude(Exclusions())
    seen.append(server.ask())

    assert seen == [[1, 2], [2], [1, 2]]


def test_answers_survive_exclusions_of_other_campaigns() -> None:
    server = PlacementServer(a_row(1))
    server.ask()

    server.states.exclude(Exclusions(campaigns={"impression_cap": frozenset({99})}))
    server.ask()

    assert server.states.hits == 1


def test_a_placement_that_changed_is_decided_again() -> None:
    server = PlacementServer(a_row(1))
    server.ask()

    server.index = compile_index(a_snapshot(a_row(2), version=2))

    assert server.ask() == [2]


def test_a_state_can_be_prepared_before_its_index_is_installed() -> None:
    server = PlacementServer(a_row(1))
    server.ask()
    newer = compile_index(a_snapshot(a_row(2), version=2))
    state = run_steps(server.states.prepare(newer.by_slug[b"home"], now=NOON))

    assert server.ask() == [1]
    server.states.install(newer, [state])
    server.index = newer

    assert server.ask() == [2]
    assert server.states.get(newer.by_slug[b"home"], NOON) is state


def test_the_oldest_answers_are_evicted_when_there_are_too_many() -> None:
    server = PlacementServer(a_row(1), answers_max=3)

    for hour in (0, 1, 2, 3, 3, 1, 0):
        server.ask(a_context(hour=hour))

    assert (server.states.hits, server.states.misses) == (2, 5)
