"""Shows findings as a table, and what to do about those that are not well."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adloom.ops.doctor.finding import Finding, FindingState

STYLES = {FindingState.OK: "green", FindingState.WARN: "yellow", FindingState.FAIL: "red"}


def show(findings: Sequence[Finding], console: Console) -> None:
    """Print every finding, with the remedy under what is not well."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        style = STYLES[finding.state]
        table.add_row(
            f"[{style}]{finding.state.value}[/{style}]", escape(finding.name), escape(finding.detail)
        )
        if finding.remedy:
            table.add_row("", "", f"[bold]→ {escape(finding.remedy)}[/bold]")
    console.print(table)


def is_well(findings: Sequence[Finding]) -> bool:
    """Tell whether nothing has failed."""
    return all(finding.state is not FindingState.FAIL for finding in findings)
