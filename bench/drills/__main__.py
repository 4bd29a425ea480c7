"""`just drills`: runs drills one after another, prints the figures of each, and exits with 1 if one of them fails."""

import asyncio
import sys
from typing import Final

from rich.console import Console

from adloom.app.progress import show_progress
from bench.drills.load import ChargeCheck
from bench.drills.result import DrillError, Figures, NotPossibleError
from bench.drills.run import SHORT, find_title, list_drills, run_drill, run_short_drills

TOGETHER: Final = "short"


def main() -> None:
    console = Console(soft_wrap=True)
    names = sys.argv[1:] or list_drills()
    is_lost = False
    with show_progress("drills") as work:
        for place, name in enumerate(names, start=1):
            work.say(f"{place} of {len(names)}: {name}")
            is_lost = not _run(console, name) or is_lost
    sys.exit(1 if is_lost else 0)


def _run(console: Console, name: str) -> bool:
    """Run a drill, or the short ones together, and print what came of it; return whether nothing was lost."""
    try:
        if name == TOGETHER:
            found, check = asyncio.run(run_short_drills())
            for one in SHORT:
                _print_figures(console, one, found[one])
        else:
            figures, check = asyncio.run(run_drill(name))
            _print_figures(console, name, figures)
    except NotPossibleError as error:
        console.print(f"[bold]{name}[/bold] was not run: {error}")
        return True
    except DrillError as error:
        console.print(f"[bold]{name}[/bold] [red]LOST[/red] {error}")
        return False
    if check is not None:
        _print_check(console, check)
    return check is None or check.is_right


def _print_figures(console: Console, name: str, figures: Figures) -> None:
    console.print(f"[bold]{find_title(name)}[/bold]")
    for what, figure in figures.items():
        console.print(f"  {what}: {figure:.2f}" if isinstance(figure, float) else f"  {what}: {figure}")


def _print_check(console: Console, check: ChargeCheck) -> None:
    console.print(
        f"  sent {check.sent}, charged {check.charged}, lost {check.lost}, twice {check.twice},"
        f" wrong states {check.wrong_states}, over budget {check.over_budget},"
        f" days whose sums do not agree {check.wrong_days} of {check.days}"
    )
    if not check.is_right:
        console.print("  [red]LOST[/red] charges were lost, or made twice")


if __name__ == "__main__":
    main()
