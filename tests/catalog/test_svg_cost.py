"""Drawings that would keep a browser busy: a few lines that use one another ten times each."""

import pytest

from adloom.catalog.asset.svg import SVG_SPACE, sanitize_svg
from adloom.catalog.asset.svg_cost import TooCostlyError
from tests.support.for_each import for_each

LEVELS = 6
TIMES = 10


def draw(inside: str) -> bytes:
    return f'<svg xmlns="{SVG_SPACE}" width="300" height="250">{inside}</svg>'.encode()


def nest(begin: str, use: str, end: str, *, more: str = "") -> bytes:
    """Draw what uses what uses what; `{0}` is the number of a level, and `{1}` that of the one below."""
    first = begin.format(0, "") + '<rect width="9" height="9"/>' + end
    levels = [
        begin.format(n, n - 1) + use.format(n, n - 1) * TIMES + end.format(n, n - 1)
        for n in range(1, LEVELS + 1)
    ]
    return draw(more + first + "".join(levels) + use.format(LEVELS + 1, LEVELS))


CLASSES = "<style>" + "".join(f".m{n} {{ mask: url(#m{n}) }}" for n in range(LEVELS + 1)) + "</style>"
CIRCLES = '<circle r="9"/>' * 500
INHERITS = '<rect mask="inherit"/>'
STYLED = '<rect style="fill:red;MASK:/**/inherit"/>'
BOMBS: dict[str, bytes] = {
    "uses": nest('<g id="m{0}">', '<use href="#m{1}"/>', "</g>"),
    "masks": nest('<mask id="m{0}">', '<rect mask="url(#m{1})"/>', "</mask>"),
    "clips": nest('<clipPath id="m{0}">', '<rect clip-path="url(&quot;#m{1}&quot;)"/>', "</clipPath>"),
    "patterns": nest('<pattern id="m{0}">', "<rect style=\"FILL: URL('#m{1}')\"/>", "</pattern>"),
    "in a style sheet": nest('<mask id="m{0}">', '<rect class="a m{1}"/>', "</mask>", more=CLASSES),
    "of an id that is written otherwise": nest('<mask id="m{0}">', '<rect mask="url(#%6d{1})"/>', "</mask>"),
    "inherited": draw(
        '<pattern id="m0"><rect/></pattern>'
        + "".join(
            f'<pattern id="m{n}"><g fill="url(#m{n - 1})">{"<rect/>" * TIMES}</g></pattern>'
            for n in range(1, LEVELS + 1)
        )
    ),
    "inherited by a use": draw(
        f'<pattern id="m0"><rect/></pattern><g id="all">{"<rect/>" * TIMES}</g>'
        + "".join(
            f'<pattern id="m{n}"><use href="#all" fill="url(#m{n - 1})"/></pattern>'
            for n in range(1, LEVELS + 1)
        )
    ),
    "inherited where it is not usual": draw(
        '<mask id="m0"><rect/></mask>'
        + "".join(
            f'<mask id="m{n}"><g mask="url(#m{n - 1})">{INHERITS * TIMES}</g></mask>'
            for n in range(1, LEVELS + 1)
        )
    ),
    "inherited by a style": draw(
        '<mask id="m0"><rect/></mask>'
        + "".join(
            f'<mask id="m{n}"><g mask="url(#m{n - 1})">{STYLED * TIMES}</g></mask>'
            for n in range(1, LEVELS + 1)
        )
    ),
    "at the points of a path": draw(
        '<marker id="m0"><rect/></marker>'
        + "".join(
            f'<marker id="m{n}"><path d="M0 0{"h1" * TIMES}" marker-mid="url(#m{n - 1})"/></marker>'
            for n in range(1, LEVELS + 1)
        )
    ),
    "effects": draw(
        '<filter id="f"><feTurbulence/></filter>' + '<rect width="9" height="9" filter="url(#f)"/>' * 1_000
    ),
    "itself": draw('<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>'),
    "a long chain": draw("".join(f'<g id="m{n}"><use href="#m{n + 1}"/></g>' for n in range(5_000))),
    "selectors": draw(f"<style>{'a,' * 100_000} b {{ fill: url(#a) }}</style>"),
}


@for_each("bomb", list(BOMBS))
def test_a_drawing_that_takes_too_long_is_refused(bomb: str) -> None:
    with pytest.raises(TooCostlyError):
        sanitize_svg(BOMBS[bomb])


def test_what_programs_draw_is_kept() -> None:
    gradients = "".join(
        f'<linearGradient id="g{n}"><stop offset="0"/><stop offset="1"/></linearGradient>' for n in range(50)
    )
    classes = "".join(f".cls-{n}{{fill:url(#g{n});}}.cls-c{n}{{clip-path:url(#c{n});}}" for n in range(50))
    clips = "".join(f'<clipPath id="c{n}"><rect width="9" height="9"/></clipPath>' for n in range(50))
    shadow = '<filter id="shadow"><feFlood/><feOffset/><feGaussianBlur/><feBlend/><feMerge><feMergeNode/></feMerge></filter>'
    shapes = "".join(
        f'<g class="cls-c{n % 50}"><path class="cls-{n % 50}" d="M0 0{"l1 1" * 40}"/></g>'
        for n in range(2_000)
    )
    shadows = '<g filter="url(#shadow)"><circle r="9"/></g>' * 50
    # As Inkscape writes texts; a filter is of the whole group, not of each of its shapes.
    group = f'<g filter="url(#shadow)" style="text-decoration:inherit">{CIRCLES}</g>'
    symbols = '<symbol id="leaf"><path d="M0 0h1"/><path d="M0 0v1"/></symbol>' + '<use href="#leaf"/>' * 500
    line = (
        '<marker id="dot"><circle r="2"/></marker>'
        f'<polyline marker-mid="url(#dot)" points="{"10,20 " * 1_000}"/>'
    )

    drawing, _ = sanitize_svg(
        draw(
            f"<defs><style>{classes}</style>{gradients}{clips}{shadow}</defs>{shapes}{shadows}{group}{symbols}{line}"
        )
    )

    assert drawing.count(b"<path") == 2_002


@for_each(
    "animation",
    [
        '<animate attributeName="class" values="a;b"/>',
        '<animate attributeName="mask" values="url(#a);url(#b)"/>',
        '<animate attributeName="fill" to="URL(#a)"/>',
    ],
)
def test_what_is_drawn_with_a_part_does_not_change(animation: str) -> None:
    drawing, _ = sanitize_svg(draw(f"<rect>{animation}</rect>"))

    assert b"animate" not in drawing


@for_each(
    ("begin", "repeated", "end"),
    [
        ('<g style="', "fill:url(#a);", '"/>'),
        ("<style>a {", "fill:url(#a);", "}</style>"),
        ("<style>{{{{", "x", "</style>"),
        ("<style>", "/*", "</style>"),
        ("<style>", "url(#", "</style>"),
    ],
)
def test_a_drawing_is_judged_in_a_time_that_grows_with_its_length(
    begin: str, repeated: str, end: str
) -> None:
    # What took time by the square would take minutes.
    sanitize_svg(draw(begin + repeated * 200_000 + end))
