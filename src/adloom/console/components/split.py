"""A whole in its parts, as one bar with a key."""

from collections.abc import Sequence

from markupsafe import Markup

Part = tuple[str, float, str]  # What it is called, how much it is, and its colour.


def split(parts: Sequence[Part], *, whole: float | None = None, description: str = "") -> Markup:
    """Draw the parts of a whole; of more than that the parts are the whole."""
    total = max(whole or 0, sum(amount for _, amount, _ in parts)) or 1
    bars = Markup("").join(
        Markup('<i style="width: {:.2f}%; background: var(--{})" title="{}"></i>').format(
            amount / total * 100, colour, name
        )
        for name, amount, colour in parts
        if amount > 0
    )
    return Markup('<div class="al-split" role="img" aria-label="{}">{}</div>').format(description, bars)


def key(parts: Sequence[tuple[str, str, str]]) -> Markup:
    """List parts with their colours: what each is called, how it is shown, and its colour."""
    return Markup("").join(
        Markup('<span class="al-key" style="--colour: var(--{})">{} <b class="num">{}</b></span>').format(
            colour, name, text
        )
        for name, text, colour in parts
    )
