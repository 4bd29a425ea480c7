"""Bounds of numbers that accounts may set: what is beyond them is for the house."""

# pure

from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec
from pydantic.alias_generators import to_camel

from adloom.core.errors import FieldProblem, ValidationFailedError
from adloom.resource.access import Scope

T = TypeVar("T", bound=msgspec.Struct)


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The least and the most, both allowed; None is no bound."""

    least: int | None = None
    most: int | None = None

    def find_nearest(self, value: int) -> int:
        raised = value if self.least is None else max(value, self.least)
        return raised if self.most is None else min(raised, self.most)

    def describe(self, value: int) -> str:
        """Say what a value that is out of bounds must be."""
        bound = f"at most {self.most}" if value > self.find_nearest(value) else f"at least {self.least}"
        return f"must be {bound}: what is beyond is for the house"


def keep_bounds(
    bounds: Mapping[str, Bounds], before: T | None, after: T, scope: Scope, *, given: Collection[str] = ()
) -> T:
    """Return a new or changed thing of an account, or raise where it sets a number out of bounds.

    A number that stays as it was is not the account's doing, and a default that is out of bounds moves to the nearest.
    """
    if scope.account_id is None:
        return after
    moved: dict[str, int] = {}
    problems: list[FieldProblem] = []
    for field, bound in bounds.items():
        value: int | None = getattr(after, field)
        if (
            value is None
            or value == bound.find_nearest(value)
            or (before and getattr(before, field) == value)
        ):
            continue
        if before is None and field not in given:
            moved[field] = bound.find_nearest(value)
        else:
            problems.append(FieldProblem(to_camel(field), bound.describe(value)))
    if problems:
        detail = "; ".join(f"{problem.field} {problem.message}" for problem in problems)
        raise ValidationFailedError(f"{detail}.", errors=problems)
    return msgspec.structs.replace(after, **moved) if moved else after
