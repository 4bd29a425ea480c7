"""A layout as a small drawing: where on a page it is."""

from typing import Final

from markupsafe import Markup

from adloom.console import strings

# Boxes on a page of 44 by 30: left, top, width, height.
BOXES: Final = {
    "full_slider": [(3, 5, 38, 10)],
    "full_static": [(3, 5, 38, 8)],
    "half_pair": [(3, 5, 18, 9), (23, 5, 18, 9)],
    "quarter_grid": [(3, 5, 8, 9), (13, 5, 8, 9), (23, 5, 8, 9), (33, 5, 8, 9)],
    "sidebar_stack": [(30, 5, 11, 9), (30, 16, 11, 9)],
    "sidebar_single": [(30, 5, 11, 12)],
    "interstitial": [(5, 4, 34, 22)],
    "popup": [(13, 8, 18, 14)],
    "inline_card": [(3, 12, 26, 8)],
    "sticky_bar": [(0, 24, 44, 6)],
}
LINES: Final = (5, 10, 15, 20, 25)


def layout_picture(layout: str) -> Markup:
    """Draw a layout, with its name beside it."""
    lines = Markup("").join(
        Markup('<rect x="3" y="{}" width="{}" height="1.5" class="text"/>').format(top, 26 if top % 2 else 22)
        for top in LINES
    )
    boxes = Markup("").join(
        Markup('<rect x="{}" y="{}" width="{}" height="{}" rx="1.5" class="ad"/>').format(*box)
        for box in BOXES[layout]
    )
    more = Markup('<path d="M19 17h2m1 0h2m1 0h2" class="dots"/>') if layout == "full_slider" else ""
    return Markup(
        '<span class="al-layout"><svg viewBox="0 0 44 30" aria-hidden="true"><rect width="44" height="30" rx="3" '
        'class="page"/>{}{}{}</svg>{}</span>'
    ).format(lines, boxes, more, strings.LAYOUTS[layout])
