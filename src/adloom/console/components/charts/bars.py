"""Bars: a funnel, a whole in its parts, and a list of shares."""

from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from adloom.console.components.format import format_percent
from adloom.console.components.layout import add_html, build_meter, set_attributes


class FunnelStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a funnel: how many pass it, and why the others do not."""

    label: str
    left: int
    note: str = ""
    kind: str = ""  # "good" marks the last step.


def build_funnel(steps: Sequence[FunnelStep], *, description: str) -> None:
    whole = max((step.left for step in steps), default=0) or 1
    rows = Markup("").join(_build_funnel_row(step, whole, before) for step, before in _with_before(steps))
    set_attributes(add_html(rows, tag="ol").classes("al-funnel"), role="list", aria_label=description)


def _with_before(steps: Sequence[FunnelStep]) -> list[tuple[FunnelStep, int]]:
    return [(step, steps[index - 1].left if index else step.left) for index, step in enumerate(steps)]


def _build_funnel_row(step: FunnelStep, whole: int, before: int) -> Markup:
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


Part = tuple[str, float, str]  # Name, amount, colour.


def split(parts: Sequence[Part], *, whole: float | None = None, description: str = "") -> Markup:
    """Draw the parts of a whole; if they exceed it, their sum is the whole."""
    total = max(whole or 0, sum(amount for _, amount, _ in parts)) or 1
    bars = Markup("").join(
        Markup('<i style="width: {:.2f}%; background: var(--{})" title="{}"></i>').format(
            amount / total * 100, colour, name
        )
        for name, amount, colour in parts
        if amount > 0
    )
    return Markup('<div class="al-split" role="img" aria-label="{}">{}</div>').format(description, bars)


def split_key(parts: Sequence[tuple[str, str, str]]) -> Markup:
    """Draw the key of a split: name, text and colour of each part."""
    return Markup("").join(
        Markup('<span class="al-key" style="--colour: var(--{})">{} <b class="num">{}</b></span>').format(
            colour, name, text
        )
        for name, text, colour in parts
    )


Share = tuple[str, float, str]  # Name, share of the whole, note.


def build_shares(rows: Sequence[Share]) -> Markup:
    items = Markup("").join(
        Markup(
            '<li><span class="cut" title="{name}">{name}</span><b class="num">{share}</b>{bar}<span class="quiet small num">{note}</span></li>'
        ).format(name=name, share=format_percent(share, places=1), bar=build_meter(share), note=note)
        for name, share, note in rows
    )
    return Markup('<ul class="al-shares">{}</ul>').format(items)
