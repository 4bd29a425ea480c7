"""The rules of many candidates, compiled so that one look-up and one AND per dimension answer for all.

Per dimension a table has a mask of accepting candidates for each value that a rule mentions, and one more mask for
any other value. An unknown value is in no list, so it is "any other", too. A candidate without a rule on a
dimension is in every mask of it; a dimension without any rule has no table and costs nothing.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from adloom.targeting.context import Context
from adloom.targeting.rules import HOURS_A_DAY, Operator, Rule, RuleType, Value
from adloom.targeting.values import list_domain_and_parents

BLOCK_CANDIDATES_MAX: Final = 1_024  # The size at which skipping whole blocks pays most.

CANDIDATES_A_STEP: Final = 64

_FIELDS: Final = {
    RuleType.DEVICE: "device",
    RuleType.COUNTRY: "country",
    RuleType.USER_SEGMENT: "segment",
    RuleType.LOGIN_STATE: "is_logged_in",
    RuleType.LANGUAGE: "language",
    RuleType.HOUR_OF_DAY: "hour",
    RuleType.DAY_OF_WEEK: "day",
    RuleType.NEW_VISITOR: "is_new_visitor",
    RuleType.REFERRER_DOMAIN: "referrer_domain",
}
_POSITIONS: Final = {kind: Context.__struct_fields__.index(field) for kind, field in _FIELDS.items()}
_NONE: Final = 0

_values_of = msgspec.structs.astuple


class DimensionTable(msgspec.Struct, frozen=True):
    """The candidates that accept each value of one dimension."""

    masks: dict[Value, int]
    other: int


class TargetingBlock:
    """Finds the candidates of a block that target a request, as a bitmap in their order."""

    __slots__ = ("_domains", "_tables")

    def __init__(self, tables: Mapping[RuleType, DimensionTable]) -> None:
        self._tables = tuple(
            (_POSITIONS[kind], table.masks, table.other)
            for kind, table in tables.items()
            if kind is not RuleType.REFERRER_DOMAIN
        )
        self._domains = tables.get(RuleType.REFERRER_DOMAIN)

    def find_eligible(self, context: Context, among: int) -> int:
        """Return the mask of those candidates among `among` that target the request."""
        if self._tables:
            values = _values_of(context)
            for position, masks, other in self._tables:
                among &= masks.get(values[position], other)
                if not among:
                    return _NONE
        if self._domains is not None:
            among &= _look_up_host(self._domains, context.referrer_domain)
        return among


def compile_in_steps(rules_by_candidate: Sequence[Sequence[Rule]]) -> Generator[None, None, TargetingBlock]:
    """Compile with pauses: a full block takes milliseconds that a request should not wait for."""
    assert len(rules_by_candidate) <= BLOCK_CANDIDATES_MAX, "a block has a bound"
    drafts: dict[RuleType, _Draft] = {}
    for position, rules in enumerate(rules_by_candidate):
        if position % CANDIDATES_A_STEP == 0:
            yield
        by_kind: dict[RuleType, list[Rule]] = {}
        for rule in rules:
            by_kind.setdefault(rule.rule_type, []).append(rule)
        for kind, of_kind in by_kind.items():
            draft = drafts.get(kind)
            if draft is None:
                draft = drafts[kind] = _Draft(kind)
            draft.add(1 << position, of_kind)
    everyone = (1 << len(rules_by_candidate)) - 1
    shared: dict[int, int] = {}
    tables: dict[RuleType, DimensionTable] = {}
    for kind, draft in drafts.items():
        yield
        tables[kind] = draft.build_table(everyone, shared)
    return TargetingBlock(tables)


def _look_up_host(domains: DimensionTable, host: str | None) -> int:
    """Look up a host by its longest suffix that a rule mentions.

    The masks of shorter suffixes are part of that one's.
    """
    while host:
        mask = domains.masks.get(host)
        if mask is not None:
            return mask
        host = host.partition(".")[2]
    return domains.other


class _Draft:
    """The table of one dimension in the making."""

    def __init__(self, kind: RuleType) -> None:
        self._has_parents = kind is RuleType.REFERRER_DOMAIN
        self._with_list = 0  # Candidates with a list of accepted values: any other value fails.
        self._accepting: dict[Value, int] = {}
        self._refusing: dict[Value, int] = {}

    def add(self, bit: int, rules: Sequence[Rule]) -> None:
        """Add all rules of one candidate on this dimension."""
        wanted = [_list_accepted_values(rule) for rule in rules if rule.operator is not Operator.NOT_IN]
        if wanted:
            self._with_list |= bit
            _mark(self._accepting, wanted[0] if len(wanted) == 1 else self._find_in_all(wanted), bit)
        for rule in rules:
            if rule.operator is Operator.NOT_IN:
                _mark(self._refusing, rule.values, bit)

    def build_table(self, everyone: int, shared: dict[int, int]) -> DimensionTable:
        """Build the table; equal masks are shared."""
        other = everyone & ~self._with_list
        masks: dict[Value, int] = {}
        for value in self._accepting.keys() | self._refusing.keys():
            mask = self._find_mask(value, other)
            if mask != other or self._has_parents:
                masks[value] = shared.setdefault(mask, mask)
        return DimensionTable(masks, shared.setdefault(other, other))

    def _find_mask(self, value: Value, other: int) -> int:
        if not self._has_parents:
            return (other | self._accepting.get(value, 0)) & ~self._refusing.get(value, 0)
        accepting, refusing = other, 0
        for part in self._with_parents(value):
            accepting |= self._accepting.get(part, 0)
            refusing |= self._refusing.get(part, 0)
        return accepting & ~refusing

    def _find_in_all(self, wanted: Sequence[Sequence[Value]]) -> Iterable[Value]:
        narrowed = set(wanted[0])
        for values in wanted[1:]:
            narrowed = {one for one in narrowed if self._is_listed(one, values)} | {
                one for one in values if self._is_listed(one, narrowed)
            }
        return narrowed

    def _is_listed(self, value: Value, values: Sequence[Value] | set[Value]) -> bool:
        return any(part in values for part in self._with_parents(value))

    def _with_parents(self, value: Value) -> Sequence[Value]:
        return list_domain_and_parents(value) if self._has_parents and isinstance(value, str) else (value,)


def _mark(masks: dict[Value, int], values: Iterable[Value], bit: int) -> None:
    for value in values:
        masks[value] = masks.get(value, 0) | bit


def _list_accepted_values(rule: Rule) -> Sequence[Value]:
    if rule.operator is not Operator.BETWEEN:
        return rule.values
    first, last = rule.values
    assert isinstance(first, int)
    assert isinstance(last, int)
    return [(first + step) % HOURS_A_DAY for step in range((last - first) % HOURS_A_DAY + 1)]
