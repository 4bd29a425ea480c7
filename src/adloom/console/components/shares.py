"""Shares of several things as bars in a list, the words beside them."""

from collections.abc import Sequence

from markupsafe import Markup

from adloom.console.components.format import percent
from adloom.console.components.heading import meter

Share = tuple[str, float, str]  # What it is called, how much of the whole, and a remark.


def shares(rows: Sequence[Share], *, kind: str = "") -> Markup:
    """List the shares."""
    items = Markup("").join(
        Markup(
            '<li><span class="cut" title="{name}">{name}</span><b class="num">{share}</b>{bar}<span class="quiet small num">{note}</span></li>'
        ).format(name=name, share=percent(share, places=1), bar=meter(share, kind), note=note)
        for name, share, note in rows
    )
    return Markup('<ul class="al-shares">{}</ul>').format(items)
