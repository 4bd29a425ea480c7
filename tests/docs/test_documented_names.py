"""Names that programs get or send are on the page about them: every value of an enumeration."""

from enum import StrEnum

import pytest

from adloom.bidding.window import BidStrategy
from adloom.budgets.messages import BudgetVerdict, MoneyKind
from adloom.catalog.asset.model import AssetKind
from adloom.catalog.assignment.model import LinkState
from adloom.catalog.campaign.model import Source
from adloom.catalog.frequency_cap import CapWindow
from adloom.catalog.placement import AuctionScoring, Layout
from adloom.core.caller import Role
from adloom.core.delivery import Delivery, Rotation
from adloom.events.conversions.attribute import ConversionMark
from adloom.events.log.event import Mark
from adloom.market.approvals.store import ApprovalDecision
from adloom.ops.attention.model import AttentionKind
from adloom.pages.classify.worker import PageOutcome
from adloom.pages.model import PageSource
from adloom.runtime.process.roles import WorkerRole
from adloom.schedule.schedule import ScheduleStatus
from adloom.serving.index.rows import AssignmentStatus
from adloom.stats.model import Grouping
from adloom.stats.overview.api import OverviewSpan
from adloom.stats.saved_report.period import ReportPeriod, SendEvery
from adloom.stats.saved_report.run import Figure
from adloom.sync.words import Platform
from adloom.targeting.rules import Operator, RuleType
from tests.docs.pages import ROOT

# Of an assignment that nothing removes.
IN_NO_ANSWER = {AssignmentStatus.LIVE}


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("accounts-and-access", Role),
        ("auctions", CapWindow),
        ("campaigns", BidStrategy),
        ("campaigns", LinkState),
        ("campaigns", Source),
        ("classification", PageOutcome),
        ("console", AttentionKind),
        ("console", OverviewSpan),
        ("contextual", ApprovalDecision),
        ("conversions", ConversionMark),
        ("events-and-statistics", Mark),
        ("monitoring", BudgetVerdict),
        ("monitoring", MoneyKind),
        ("pictures", AssetKind),
        ("placements", AuctionScoring),
        ("placements", Delivery),
        ("placements", Layout),
        ("placements", Rotation),
        ("schedules", ScheduleStatus),
        ("serving", AssignmentStatus),
        ("several-machines", WorkerRole),
        ("sites", PageSource),
        ("statistics", Figure),
        ("statistics", Grouping),
        ("statistics", ReportPeriod),
        ("statistics", SendEvery),
        ("stats-sync", Platform),
        ("targeting", Operator),
        ("targeting", RuleType),
    ],
)
def test_every_name_of_a_kind_is_on_its_page(page: str, kind: type[StrEnum]) -> None:
    text = (ROOT / "docs" / "guide" / f"{page}.md").read_text(encoding="utf-8")

    assert [name for name in kind if f"`{name}`" not in text and name not in IN_NO_ANSWER] == []
