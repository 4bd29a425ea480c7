"""A funnel: how many are left after each step, as bars that grow shorter."""

from collections.abc import Sequence

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console.components.attributes import attributed


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step: what it is called, how many pass it, and what took the others."""

    label: str
    left: int
    note: str = ""
    kind: str = ""  # good is the end that one hopes for.


def funnel(steps: Sequence[Step], *, description: str) -> None:
    """Draw the steps; the first is the whole."""
    whole = max((step.left for step in steps), default=0) or 1
    rows = Markup("").join(_row(step, whole, before) for step, before in _with_before(steps))
    attributed(
        ui.html(rows, sanitize=False, tag="ol").classes("al-funnel"), role="list", aria_label=description
    )


def _with_before(steps: Sequence[Step]) -> list[tuple[Step, int]]:
    return [(step, steps[index - 1].left if index else step.left) for index, step in enumerate(steps)]


def _row(step: Step, whole: int, before: int) -> Markup:
    gone = before - step.left
    lost = (
        Markup('<span class="gone" title="{}">&minus;{:,}</span>').format(step.note, gone) if gone > 0 else ""
    )
    return Markup(
        '<li class="{kind}"><span class="name">{label}</span>'
        '<span class="bar" aria-hidden="true"><i style="width: {width:.2f}%"></i><b style="width: {cut:.2f}%"></b></span>'
        '<span class="num">{left:,}</span><span class="cutoff">{lost}</span><span class="note">{note}</span></li>'
    ).format(
        kind=step.kind,
        label=step.label,
        width=step.left / whole * 100,
        cut=max(0, gone) / whole * 100,
        left=step.left,
        lost=lost,
        note=step.note if gone > 0 else "",
    )
