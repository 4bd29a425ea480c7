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
from tests.support.for_each import for_each
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


@given(st.lists(rules(), min_size=2, max_size=6).map(tuple), contexts())
def test_several_rules_of_one_candidate_must_all_hold(one: tuple[Rule, ...], context: Context) -> None:
    together = compile_block([one]).find_eligible(context, 1)
    apart = compile_block([(rule,) for rule in one]).find_eligible(context, (1 << len(one)) - 1)

    assert bool(together) == (apart == (1 << len(one)) - 1)


@for_each(
    ("first", "second", "host", "is_eligible"),
    [
        (("in", ["example.com"]), ("in", ["a.example.com"]), "x.a.example.com", True),
        (("in", ["example.com"]), ("in", ["a.example.com"]), "b.example.com", False),
        (("in", ["example.com"]), ("in", ["example.org"]), "example.com", False),
        (("in", ["example.com"]), ("not_in", ["a.example.com"]), "example.com", True),
        (("in", ["example.com"]), ("not_in", ["a.example.com"]), "x.a.example.com", False),
        (("in", ["a.example.com"]), ("not_in", ["example.com"]), "a.example.com", False),
        (("not_in", ["example.com"]), ("not_in", ["example.org"]), None, True),
        (("in", ["example.com"]), ("in", ["example.com"]), None, False),
    ],
)
def test_nested_domains_are_narrowed_by_every_rule(
    first: tuple[str, list[str]], second: tuple[str, list[str]], host: str | None, *, is_eligible: bool
) -> None:
    candidate = (parse_rule("referrer_domain", *first), parse_rule("referrer_domain", *second))

    for order in (candidate, candidate[::-1]):
        assert compile_block([order]).find_eligible(a_context(referrer_domain=host), 1) == is_eligible


def test_candidates_without_rules_target_all_visitors() -> None:
    assert compile_block([(), (), ()]).find_eligible(a_context(), 0b101) == 0b101


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
