"""Compiled rules match the same candidates as plain rules."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.serving.index.steps import run_steps
from adloom.targeting.bitmaps import BLOCK_CANDIDATES_MAX, TargetingBlock, compile_in_steps
from adloom.targeting.context import Context
from adloom.targeting.evaluate import matches_all
from adloom.targeting.rules import Rule, parse_rule
from tests.targeting.builders import a_context
from tests.targeting.strategies import contexts, rules

CANDIDATES = st.lists(st.lists(rules(), max_size=5).map(tuple), max_size=40)


def compile_block(candidates: Sequence[Sequence[Rule]]) -> TargetingBlock:
    return run_steps(compile_in_steps(candidates))


def find_eligible_one_by_one(candidates: list[tuple[Rule, ...]], context: Context) -> int:
    return sum(1 << position for position, one in enumerate(candidates) if matches_all(one, context))


@given(CANDIDATES, st.lists(contexts(), min_size=1, max_size=8), st.integers(0))
def test_a_block_agrees_with_its_rules_one_by_one(
    candidates: list[tuple[Rule, ...]], several: list[Context], bits: int
) -> None:
    block = compile_block(candidates)
    all_candidates = (1 << len(candidates)) - 1
    some_candidates = bits & all_candidates

    for context in several:
        expected = find_eligible_one_by_one(candidates, context)

        assert block.find_eligible(context, all_candidates) == expected
        assert block.find_eligible(context, some_candidates) == expected & some_candidates


def test_a_block_without_candidates_is_empty() -> None:
    assert compile_block([]).find_eligible(a_context(), 0) == 0


def test_a_full_block_is_evaluated() -> None:
    german, others = parse_rule("country", "in", ["DE"]), parse_rule("country", "not_in", ["DE"])
    block = compile_block([(german,), (others,)] * (BLOCK_CANDIDATES_MAX // 2))
    all_candidates = (1 << BLOCK_CANDIDATES_MAX) - 1

    assert block.find_eligible(a_context(country="DE"), all_candidates) == all_candidates // 3
    assert (
        block.find_eligible(a_context(country=None), all_candidates) == all_candidates - all_candidates // 3
    )


def test_too_many_candidates_for_a_block_are_refused() -> None:
    with pytest.raises(AssertionError):
        compile_block([()] * (BLOCK_CANDIDATES_MAX + 1))
