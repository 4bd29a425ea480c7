"""A banner in its layout, on a computer and on a phone, and layouts as small drawings."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.components.layout import add_div
from adloom.console.theme import PREVIEW

PREVIEW_ON: Final = {"desktop": "Preview on a computer", "phone": "Preview on a phone"}

Device = Literal["desktop", "phone"]
Banner = Mapping[str, Any]

DEVICES: Final[tuple[Device, ...]] = ("desktop", "phone")
# How many banners a layout shows side by side.
BANNERS_ABREAST: Final = {"half_pair": 2, "quarter_grid": 4, "sidebar_stack": 2, "full_slider": 2}
# fmt: off
SHOWN: Final = (
    "title", "headline", "subheadline", "description", "primaryImageUrl", "primaryImageAlt", "mobileImageUrl",
    "videoUrl", "mediaVariants", "ctaLabel", "ctaUrl", "ctaOpenNewTab", "bgColor", "transitionDurationMs",
    "fallbackPlaceholderUrl",
)
# fmt: on
NEIGHBOUR: Final = {"headline": "Another ad", "subheadline": "", "bgColor": "#eeeeee"}
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


class BannerPreview:
    """Preview frames, one a device; `show` changes their content without reloading them."""

    def __init__(self, *devices: Device) -> None:
        self._frames: list[ui.element] = []
        for device in devices or DEVICES:
            with add_div(f"al-preview {device}"):
                frame = ui.element("iframe").props(
                    f'sandbox="allow-scripts" inert title="{PREVIEW_ON[device]}"'
                )
            self._frames.append(frame)

    def show(self, banners: Sequence[Banner], layout: str, *, instead: str | None = None) -> None:
        """Show banners in a layout; without banners, show the image `instead`."""
        scene = {
            "layout": layout,
            "instead": instead,
            "banners": [{name: banner.get(name) for name in SHOWN} for banner in banners],
            "words": {
                "bad": "This picture could not be loaded:",
                "nothing": "Give it a picture to see it here.",
            },
        }
        for frame in self._frames:
            frame.props["src"] = f"{PREVIEW}#{quote(msgspec.json.encode(scene))}"


def with_neighbours(banner: Banner, layout: str) -> list[Banner]:
    """Add placeholder banners where the layout shows several next to each other."""
    return [banner, *[NEIGHBOUR] * (BANNERS_ABREAST.get(layout, 1) - 1)]


def draw_layout(layout: str) -> Markup:
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
