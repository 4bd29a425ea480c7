"""Every reason that the code can give for a removal is known to the console and the guide."""

import re
from pathlib import Path

import pytest

from adloom.budgets.messages import BudgetVerdict
from adloom.console.pages.why.candidates import (
    AUCTION,
    CONTEXTUAL,
    DIRECT,
    SLOT_STEPS,
    STEP_OF,
    STEPS,
    explain_record,
    find_step,
    list_funnel_steps,
)
from adloom.explain.reasons import REASONS
from adloom.schedule.schedule_window import ClosedReason
from adloom.serving.auction import bid_record
from adloom.serving.contextual import decide
from adloom.serving.eligibility import caps
from adloom.serving.index.rows import AssignmentStatus
from adloom.serving.leases import campaign_lease
from adloom.targeting.rules import RuleType

GUIDE = Path(__file__).resolve().parents[2] / "docs/guide/serving.md"
ROW = re.compile(r"^\| (`[^|]+`) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
NAME = re.compile(r"`([a-z_]+)(?::…)?`")


def constants(module: object) -> set[str]:
    return {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}


RECORDED = {
    *constants(bid_record),
    *(f"{bid_record.TARGETING}:{one}" for one in RuleType),
    *(f"{bid_record.SCHEDULE}:{one}" for one in ClosedReason),
    caps.IMPRESSION_CAP,
    caps.CLICK_CAP,
    *(campaign_lease.REASON_BY_VERDICT.get(one, campaign_lease.BUDGET_PENDING) for one in BudgetVerdict),
}
EXPLAINED = {
    *REASONS,
    *(one.value for one in AssignmentStatus if one is not AssignmentStatus.LIVE),
}
HEADS = {name.partition(":")[0] for name in RECORDED | EXPLAINED}


def test_every_reason_has_a_step_of_the_funnel() -> None:
    assert STEP_OF.keys() == HEADS
    assert set(STEP_OF.values()) <= {*AUCTION, *DIRECT}


def test_every_recorded_reason_has_a_sentence() -> None:
    missing = [
        name
        for name in sorted(RECORDED)
        if explain_record(name, "removed") == "The record does not say more."
    ]

    assert missing == []


def test_every_reason_of_a_contextual_slot_has_a_step_and_a_sentence() -> None:
    names = constants(decide) - {decide.NO_DEMAND}

    assert [name for name in sorted(names) if name not in STEP_OF and name not in SLOT_STEPS] == []
    assert {find_step(name) for name in names} <= set(CONTEXTUAL)
    said = {name: explain_record(name, "removed") for name in sorted(names)}
    assert [name for name, one in said.items() if one == "The record does not say more."] == []


def test_a_pending_budget_belongs_to_the_budget_step() -> None:
    found = list_funnel_steps({"budget_pending": 3}, lost=0, won=1, is_auction=True)

    left = {step.label: step.left for step in found}
    assert (left[STEPS["status"].label], left[STEPS["budget"].label]) == (4, 1)


@pytest.mark.parametrize("name", ["targeting:country", "targeting"])
def test_a_detail_of_a_reason_does_not_change_its_step(name: str) -> None:
    assert find_step(name) == "targeting"


def test_the_guide_has_every_reason_with_what_to_do_about_it() -> None:
    section = GUIDE.read_text().partition("## Why this one?")[2]

    named = [name for row in ROW.finditer(section) for name in NAME.findall(row[1])]

    assert sorted(named) == sorted(HEADS)
