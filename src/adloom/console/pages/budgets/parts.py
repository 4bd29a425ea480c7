"""What the pages about budgets have in common: the parts of a day's budget, and its pace."""

from typing import Final

from markupsafe import Markup

from adloom.console.client import Json
from adloom.console.components import format as shown
from adloom.console.components.heading import badge
from adloom.console.components.split import Part, split

COLOURS: Final = {"Spent": "c1", "Held": "c4", "Leased": "c2", "Left": "line"}
KEY: Final = [(name, "", colour) for name, colour in COLOURS.items()]
ON_THE_LINE: Final = (0.9, 1.02)


def parts_of(row: Json) -> list[Part]:
    """Part a day's budget: what is leased and not offered is part of what is left."""
    leased = row["leasedPaisa"]
    amounts = (row["spentTodayPaisa"], row["heldPaisa"], leased)
    return [(name, amount, COLOURS[name]) for name, amount in zip(COLOURS, amounts, strict=False)]


def split_row(row: Json) -> Markup:
    """Draw where the budget of a row is."""
    whole = row["dailyBudgetPaisa"]
    text = f"{shown.money(row['spentTodayPaisa'])} / {'no limit' if whole is None else shown.money(whole)}"
    return split(parts_of(row), whole=whole, description=text)


def pace_of(pace: float | None) -> Markup:
    """Say how the spend stands to the line."""
    if pace is None:
        return Markup('<span class="quiet">{}</span>').format("as fast as it can")
    low, high = ON_THE_LINE
    label, kind = (
        ("behind the line", "info")
        if pace < low
        else ("ahead of the line", "warn")
        if pace > high
        else ("on the line", "good")
    )
    return Markup('<span title="{}">{}</span>').format(
        f"{shown.percent(pace, places=0)} of what may be spent by now", badge(label, kind)
    )
