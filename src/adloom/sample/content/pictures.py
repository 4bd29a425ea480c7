"""The sample's pictures: SVG drawn from a subject, a palette and a size. Nothing is loaded from outside."""

import itertools
import math
from collections.abc import Iterator
from typing import Final

import msgspec

from adloom.sample.content.catalog import DATA

FOLDER: Final = "/sample/pictures/"
FREE_PATH: Final = f"{FOLDER}your-ad.svg"
HORIZON: Final = 0.8  # Share of the height where the ground begins.
RAISED_HORIZON: Final = 0.53  # The same in a picture with text on its ground.
BOX: Final = 400  # Side of the square that a subject is drawn in.
WIDE: Final = 1.6  # From this ratio on an ad's text is beside the subject, not over it.
TEXT_SHARE: Final = 0.45  # Share of a wide ad that its text takes.
HILLS: Final = "hills"
# Shapes in a box of 400 by 400, on a ground at 330.
SUBJECTS: Final = {
    file.name.removesuffix(".svg"): file.read_text(encoding="utf-8")
    for file in DATA.joinpath("subjects").iterdir()
}


class Palette(msgspec.Struct, frozen=True):
    """The colours of a picture."""

    sky: str
    glow: str
    ground: str
    far: str


PALETTES: Final = {
    "rust": Palette("#b9562b", "#d27a3f", "#5f2d1d", "#8f4024"),
    "pine": Palette("#2f6b5c", "#3b7d6c", "#1d463c", "#28594c"),
    "night": Palette("#28335c", "#37457a", "#182041", "#202a50"),
    "honey": Palette("#c98a2e", "#dfa94d", "#7d4f17", "#a76d20"),
    "plum": Palette("#6b3554", "#854a6b", "#42203a", "#572a47"),
    "slate": Palette("#3d5563", "#52707f", "#253741", "#304752"),
    "moss": Palette("#5d6f3a", "#76894c", "#36441f", "#49592c"),
    "rose": Palette("#a94a52", "#c2656a", "#69272f", "#8a3a42"),
}


class Picture(msgspec.Struct, frozen=True):
    """A picture: what it shows, in which colours, how large."""

    subject: str
    palette: str
    width: int
    height: int
    is_for_ad: bool = False  # An ad has text at the foot of its picture, or at its left.

    @property
    def path(self) -> str:
        kind = "ad-" if self.is_for_ad else ""
        return f"{FOLDER}{kind}{self.subject}-{self.palette}-{self.width}x{self.height}.svg"

    @property
    def is_wide(self) -> bool:
        """Whether the text is beside the subject, not under it."""
        return self.width >= WIDE * self.height

    @property
    def colour(self) -> str:
        return PALETTES[self.palette].sky

    def render_svg(self) -> str:
        palette = PALETTES[self.palette]
        size = f'width="{self.width}" height="{self.height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {self.width} {self.height}">'
            f'<rect {size} fill="{palette.sky}"/>{"".join(_draw_shapes(self, palette))}</svg>'
        )


def _draw_shapes(picture: Picture, palette: Palette) -> Iterator[str]:
    width, height = picture.width, picture.height
    centre = width * (0.74 if picture.is_wide else 0.5)
    raised = picture.is_for_ad and not picture.is_wide
    yield f'<circle cx="{centre:.0f}" cy="{height * 0.42:.0f}" r="{height * 0.52:.0f}" fill="{palette.glow}"/>'
    if picture.subject == HILLS:
        yield f'<circle cx="{centre:.0f}" cy="{height * 0.4:.0f}" r="{height * 0.2:.0f}" fill="#f7d9a4"/>'
        yield from _draw_hills(picture, palette)
        return
    horizon = RAISED_HORIZON if raised else HORIZON
    yield _draw_ridge(picture, horizon - 0.1, 0.05, palette.far, phase=0.6)
    yield f'<path d="M0 {height * horizon:.0f}H{width}V{height}H0Z" fill="{palette.ground}"/>'
    # A subject stands on the ground, and leaves some air above it.
    share = 0.78 if picture.is_wide else min(1.0, width / height) * (0.54 if raised else 0.72)
    scale = height * share / BOX
    left, top = centre - BOX / 2 * scale, height * (horizon + 0.06) - 330 * scale
    yield f'<g transform="translate({left:.1f} {top:.1f}) scale({scale:.3f})">{SUBJECTS[picture.subject]}</g>'


def _draw_hills(picture: Picture, palette: Palette) -> Iterator[str]:
    """Draw a landscape: three ridges, and trees on the second."""
    width, height = picture.width, picture.height
    yield _draw_ridge(picture, 0.6, 0.13, palette.far, phase=0.4)
    leaves = ("#e7a13d", "#d9772f", "#c8492c", "#f0b75c", "#9db35a")
    count = max(3, round(width / height * 3))
    for number in range(count):
        share = (number + 0.5 + 0.3 * math.sin(number * 2.4)) / count
        if picture.is_for_ad and picture.is_wide and share < TEXT_SHARE:
            continue
        x, size = share * width, height * (0.075 + 0.03 * math.sin(number * 1.7))
        foot = height * (0.8 - 0.05 * math.sin(share * 5))
        yield (
            f'<path d="M{x:.0f} {foot:.0f}V{foot - size * 2.4:.0f}" stroke="#2f170b" stroke-width="{height / 60:.1f}"/>'
            f'<circle cx="{x:.0f}" cy="{foot - size * 2.6:.0f}" r="{size:.0f}" fill="{leaves[number % len(leaves)]}"/>'
            f'<circle cx="{x + size * 0.6:.0f}" cy="{foot - size * 2:.0f}" r="{size * 0.62:.0f}"'
            f' fill="{leaves[number % len(leaves)]}"/>'
        )
    yield _draw_ridge(picture, 0.77, 0.06, palette.ground, phase=1.1)
    yield _draw_ridge(picture, 0.9, 0.04, "#0003", phase=2.2)


def _draw_ridge(picture: Picture, level: float, swing: float, colour: str, *, phase: float) -> str:
    """Draw the edge of a hill across the picture, and all that is under it."""
    width, height = picture.width, picture.height
    points = [
        (width * step / 4, height * (level + swing * math.sin(phase + step * 1.9))) for step in range(5)
    ]
    x, y = points[0]
    path = f"M{x:.0f} {y:.0f}"
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        middle = (x1 + x2) / 2
        path += f"C{middle:.0f} {y1:.0f} {middle:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
    return f'<path d="{path}V{height}H0Z" fill="{colour}"/>'
