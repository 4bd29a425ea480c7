"""What the parts of the budget bench share: tables, and goals that are met or not."""

from collections.abc import Callable, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

ShowStatus = Callable[[str], None]


class GoalResult(msgspec.Struct, frozen=True, kw_only=True):
    """A goal, the measured value, and whether it is met."""

    claim: str
    found: str
    is_met: bool


class BudgetOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one part, as text."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    judged: Sequence[GoalResult]


def render_outcome(outcome: BudgetOutcome) -> RenderableType:
    """Render a table within 80 columns, and a line per goal."""
    table = Table(title=outcome.title, title_justify="left", title_style="dim")
    first, *others = outcome.headings
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right")
    for row in outcome.rows:
        table.add_row(*row)
    return Group(table, *map(_render_goal, outcome.judged))


def _render_goal(judged: GoalResult) -> Text:
    mark, style = ("met", "green") if judged.is_met else ("NOT MET", "bold red")
    return Text.assemble(f"goal: {judged.claim}: ", (f"{judged.found}, {mark}", style))
