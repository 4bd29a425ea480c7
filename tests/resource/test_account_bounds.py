"""Numbers that accounts set stay within their bounds, whatever they send."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import ValidationFailedError
from adloom.core.ids import SystemIds
from adloom.resource.access import Scope
from adloom.resource.account_bounds import Bounds, keep_bounds

ACCOUNT, HOUSE = Scope(SystemIds().make()), Scope(None)
BOUNDS = {"order": Bounds(least=100), "weight": Bounds(most=100)}
numbers = st.none() | st.integers(0, 300)


class Place(msgspec.Struct, frozen=True):
    """A thing with two numbers that are bounded, and one that is not."""

    order: int | None = 0
    weight: int | None = 100
    size: int | None = 0


places = st.builds(Place, numbers, numbers, numbers)


def is_within(field: str, value: int | None) -> bool:
    return value is None or value == BOUNDS[field].find_nearest(value)


@given(st.none() | places, places, st.sets(st.sampled_from(["order", "weight", "size"])))
def test_an_account_sets_no_number_out_of_bounds(
    before: Place | None, after: Place, given_names: set[str]
) -> None:
    changed = [field for field in BOUNDS if before is None or getattr(before, field) != getattr(after, field)]
    wrong = [field for field in changed if not is_within(field, getattr(after, field))]
    is_refused = bool(wrong) and (before is not None or bool(given_names.intersection(wrong)))

    if is_refused:
        with pytest.raises(ValidationFailedError) as refused:
            keep_bounds(BOUNDS, before, after, ACCOUNT, given=given_names)
        assert {problem.field for problem in refused.value.errors} <= set(wrong)
        return
    kept = keep_bounds(BOUNDS, before, after, ACCOUNT, given=given_names)

    assert all(is_within(field, getattr(kept, field)) for field in changed)
    assert kept.size == after.size


@given(st.none() | places, places)
def test_the_house_sets_any_number(before: Place | None, after: Place) -> None:
    assert keep_bounds(BOUNDS, before, after, HOUSE, given=("order", "weight")) is after
