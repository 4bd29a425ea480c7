"""A banner in its layout, on a computer and on a phone: drawn by the tag itself, in a frame without rights."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec
from nicegui import ui

from adloom.console.preview import PREVIEW

PREVIEW_ON: Final = {"desktop": "Preview on a computer", "phone": "Preview on a phone"}


Device = Literal["desktop", "phone"]
Banner = Mapping[str, Any]

DEVICES: Final[tuple[Device, ...]] = ("desktop", "phone")
# How many banners a layout shows at once, so that one banner is not seen alone where it never is.
ABREAST: Final = {"half_pair": 2, "quarter_grid": 4, "sidebar_stack": 2, "full_slider": 2}
SHOWN: Final = (
    "title",
    "headline",
    "subheadline",
    "description",
    "primaryImageUrl",
    "primaryImageAlt",
    "mobileImageUrl",
    "videoUrl",
    "mediaVariants",
    "ctaLabel",
    "ctaUrl",
    "ctaOpenNewTab",
    "bgColor",
    "transitionDurationMs",
)
NEIGHBOUR: Final = {"headline": "Another ad", "subheadline": "", "bgColor": "#eeeeee"}


class BannerPreview:
    """One frame; `show` fills it anew without loading it."""

    def __init__(self, device: Device) -> None:
        with ui.element("div").classes(f"al-preview {device}"):
            self._frame = ui.element("iframe").props(
                f'sandbox="allow-scripts" inert title="{PREVIEW_ON[device]}"'
            )

    def show(
        self, banners: Sequence[Banner], layout: str, *, ratio: str | None = None, instead: str | None = None
    ) -> None:
        """Show banners in a layout; where there is none, the picture that a placement has instead."""
        scene = {
            "layout": layout,
            "ratio": ratio,
            "instead": instead,
            "banners": [{name: banner.get(name) for name in SHOWN} for banner in banners],
            "words": {
                "bad": "This picture could not be loaded:",
                "nothing": "Give it a picture to see it here.",
            },
        }
        self._frame.props["src"] = f"{PREVIEW}#{quote(msgspec.json.encode(scene))}"


def with_neighbours(banner: Banner, layout: str) -> list[Banner]:
    """Give a banner company, where its layout shows several beside each other."""
    return [banner, *[NEIGHBOUR] * (ABREAST.get(layout, 1) - 1)]
