"""The sample's pictures, drawn by us from a few parameters: nothing is loaded from anywhere else."""

import itertools
import math
from collections.abc import Iterator
from typing import Final

import msgspec

from adloom.sample.subjects import SUBJECTS

FOLDER: Final = "/sample/pictures/"
FREE_PATH: Final = f"{FOLDER}your-ad.svg"
HORIZON: Final = 0.8  # Of the height: where the ground begins,
RAISED_HORIZON: Final = 0.53  # and where in a picture with words on its ground.
BOX: Final = 400  # In which a subject is drawn.
WIDE: Final = 1.6  # From this ratio on the words of an ad stand beside the subject, not over it.
WORDS_SHARE: Final = 0.45  # Of a wide ad: where its words stand.
HILLS: Final = "hills"


class Palette(msgspec.Struct, frozen=True):
    """The colours of a picture: the sky, a glow in it, the ground, and what lies farther away."""

    sky: str
    glow: str
    ground: str
    far: str


RUST: Final = Palette("#b9562b", "#d27a3f", "#5f2d1d", "#8f4024")
PINE: Final = Palette("#2f6b5c", "#3b7d6c", "#1d463c", "#28594c")
NIGHT: Final = Palette("#28335c", "#37457a", "#182041", "#202a50")
HONEY: Final = Palette("#c98a2e", "#dfa94d", "#7d4f17", "#a76d20")
PLUM: Final = Palette("#6b3554", "#854a6b", "#42203a", "#572a47")
SLATE: Final = Palette("#3d5563", "#52707f", "#253741", "#304752")
MOSS: Final = Palette("#5d6f3a", "#76894c", "#36441f", "#49592c")
ROSE: Final = Palette("#a94a52", "#c2656a", "#69272f", "#8a3a42")
PALETTES: Final = {
    "rust": RUST,
    "pine": PINE,
    "night": NIGHT,
    "honey": HONEY,
    "plum": PLUM,
    "slate": SLATE,
    "moss": MOSS,
    "rose": ROSE,
}


class Picture(msgspec.Struct, frozen=True):
    """A picture by what it shows, in which colours, and how large."""

    subject: str
    palette: str
    width: int
    height: int
    is_for_ad: bool = False  # An ad has words at the foot of its picture, or at its left.

    @property
    def path(self) -> str:
        """Where it is served."""
        kind = "ad-" if self.is_for_ad else ""
        return f"{FOLDER}{kind}{self.subject}-{self.palette}-{self.width}x{self.height}.svg"

    @property
    def is_wide(self) -> bool:
        """Whether words stand beside the subject, not under it."""
        return self.width >= WIDE * self.height

    @property
    def colour(self) -> str:
        """The colour that it has most of."""
        return PALETTES[self.palette].sky

    def svg(self) -> str:
        """Draw it."""
        palette = PALETTES[self.palette]
        size = f'width="{self.width}" height="{self.height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {self.width} {self.height}">'
            f'<rect {size} fill="{palette.sky}"/>{"".join(_shapes(self, palette))}</svg>'
        )


def _shapes(picture: Picture, palette: Palette) -> Iterator[str]:
    width, height = picture.width, picture.height
    centre = width * (0.74 if picture.is_wide else 0.5)
    raised = picture.is_for_ad and not picture.is_wide
    yield f'<circle cx="{centre:.0f}" cy="{height * 0.42:.0f}" r="{height * 0.52:.0f}" fill="{palette.glow}"/>'
    if picture.subject == HILLS:
        yield f'<circle cx="{centre:.0f}" cy="{height * 0.4:.0f}" r="{height * 0.2:.0f}" fill="#f7d9a4"/>'
        yield from _hills(picture, palette)
        return
    horizon = RAISED_HORIZON if raised else HORIZON
    yield _ridge(picture, horizon - 0.1, 0.05, palette.far, phase=0.6)
    yield f'<path d="M0 {height * horizon:.0f}H{width}V{height}H0Z" fill="{palette.ground}"/>'
    # A subject stands on the ground, and leaves some air above it.
    share = 0.78 if picture.is_wide else min(1.0, width / height) * (0.54 if raised else 0.72)
    scale = height * share / BOX
    left, top = centre - BOX / 2 * scale, height * (horizon + 0.06) - 330 * scale
    yield f'<g transform="translate({left:.1f} {top:.1f}) scale({scale:.3f})">{SUBJECTS[picture.subject]}</g>'


def _hills(picture: Picture, palette: Palette) -> Iterator[str]:
    """Draw a landscape: three ridges, and trees on the second."""
    width, height = picture.width, picture.height
    yield _ridge(picture, 0.6, 0.13, palette.far, phase=0.4)
    leaves = ("#e7a13d", "#d9772f", "#c8492c", "#f0b75c", "#9db35a")
    count = max(3, round(width / height * 3))
    for number in range(count):
        share = (number + 0.5 + 0.3 * math.sin(number * 2.4)) / count
        if picture.is_for_ad and picture.is_wide and share < WORDS_SHARE:
            continue
        x, size = share * width, height * (0.075 + 0.03 * math.sin(number * 1.7))
        foot = height * (0.8 - 0.05 * math.sin(share * 5))
        yield (
            f'<path d="M{x:.0f} {foot:.0f}V{foot - size * 2.4:.0f}" stroke="#2f170b" stroke-width="{height / 60:.1f}"/>'
            f'<circle cx="{x:.0f}" cy="{foot - size * 2.6:.0f}" r="{size:.0f}" fill="{leaves[number % len(leaves)]}"/>'
            f'<circle cx="{x + size * 0.6:.0f}" cy="{foot - size * 2:.0f}" r="{size * 0.62:.0f}"'
            f' fill="{leaves[number % len(leaves)]}"/>'
        )
    yield _ridge(picture, 0.77, 0.06, palette.ground, phase=1.1)
    yield _ridge(picture, 0.9, 0.04, "#0003", phase=2.2)


def _ridge(picture: Picture, level: float, swing: float, colour: str, *, phase: float) -> str:
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


def free_place() -> str:
    """Draw what stands where an ad could be."""
    words = (
        ("300", "46", "700", "Your first ad"),
        ("350", "25", "400", "This place is kept free for it."),
        ("386", "25", "400", "Make a campaign, and it is here."),
    )
    text = "".join(
        f'<text x="300" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="middle">{line}</text>'
        for y, size, weight, line in words
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="600" viewBox="0 0 600 600">'
        '<rect width="600" height="600" fill="#f3e7d3"/><rect x="26" y="26" width="548" height="548" rx="24" '
        'fill="none" stroke="#a8481f" stroke-width="5" stroke-dasharray="18 14"/>'
        '<path d="M300 150V230M260 190H340" stroke="#a8481f" stroke-width="14" stroke-linecap="round"/>'
        f'<g fill="#2b2622" font-family="system-ui, sans-serif">{text}</g></svg>'
    )
