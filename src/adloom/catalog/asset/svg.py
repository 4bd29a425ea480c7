"""SVG without anything that acts or loads: the text is parsed, and only what is known to be harmless is written again.

What is kept are shapes, texts, gradients, filters and simple animations. Scripts, events, links, foreign elements and
addresses of elsewhere are left out. Entities are refused: they can make a small file large.
"""

import re
from typing import Final
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from adloom.catalog.asset.model import AssetRefusedError, check_size
from adloom.catalog.asset.svg_cost import SvgPart, check_cost

SVG_SPACE: Final = "http://www.w3.org/2000/svg"
XLINK_SPACE: Final = "http://www.w3.org/1999/xlink"
XML_SPACE: Final = "http://www.w3.org/XML/1998/namespace"
ELEMENTS_MAX: Final = 20_000
DEPTH_MAX: Final = 100
DEFAULT_SIZE: Final = (300, 150)  # As browsers have it where a file says nothing.
USUAL_MAX: Final = 4_000  # Of a box: beyond, its units are not pixels.
UNUSUAL_SIDE: Final = 1_000
# fmt: off
ELEMENTS: Final = frozenset({
    "svg", "g", "defs", "symbol", "use", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text",
    "tspan", "textPath", "title", "desc", "linearGradient", "radialGradient", "stop", "clipPath", "mask", "pattern",
    "marker", "image", "style", "switch", "filter", "feBlend", "feColorMatrix", "feComponentTransfer", "feComposite",
    "feConvolveMatrix", "feDiffuseLighting", "feDisplacementMap", "feDistantLight", "feDropShadow", "feFlood", "feFuncA",
    "feFuncB", "feFuncG", "feFuncR", "feGaussianBlur", "feMerge", "feMergeNode", "feMorphology", "feOffset",
    "fePointLight", "feSpecularLighting", "feSpotLight", "feTile", "feTurbulence", "animate", "animateTransform",
    "animateMotion", "mpath",
})
# fmt: on
ANIMATIONS: Final = frozenset({"animate", "animateTransform", "animateMotion"})
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_OWN_REFERENCE: Final = re.compile(r"#[^\s\"'<>]*")
_EMBEDDED: Final = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")
# What a style or a value may not have: an address other than of a part of the file itself.
_LOADS: Final = re.compile(r"url\(\s*(?!['\"]?#)|@import|expression\(|javascript:|\\", re.IGNORECASE)
_LENGTH: Final = re.compile(r"\s*(\d{1,5}(?:\.\d*)?)(?:px)?\s*")


def sanitize_svg(data: bytes) -> tuple[bytes, tuple[int, int]]:
    """Return the harmless part of a drawing, and its size; raises AssetRefusedError."""
    writer = _SvgWriter()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = writer.start
    parser.EndElementHandler = writer.end
    parser.CharacterDataHandler = writer.write_text
    parser.EntityDeclHandler = _refuse_entity
    try:
        parser.Parse(data, True)  # noqa: FBT003 - as the parser declares it
    except (expat.ExpatError, LookupError, ValueError) as error:  # The latter two: encodings.
        raise AssetRefusedError(f"The SVG cannot be read: {error}.") from error
    return writer.finish()


def _refuse_entity(*_: object) -> None:
    raise AssetRefusedError("The SVG declares entities. Save it without them, as plain SVG.")


class _SvgWriter:
    """Writes what is kept; an element that is not takes all below it along."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._open: list[str] = []
        self._dropped = 0  # How deep we are in an element that is not kept.
        self._elements = 0
        self._size: tuple[int, int] | None = None
        # Of the style element that is open: what is harmless in pieces may not be so as a whole.
        self._style: list[str] = []
        # What it costs to draw all that is kept.
        self._sheets: list[str] = []
        self._kept: list[SvgPart] = []
        self._kept_open: list[int] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        self._elements += 1
        if self._elements > ELEMENTS_MAX or len(self._open) + self._dropped >= DEPTH_MAX:
            raise AssetRefusedError(
                f"The SVG has more than {ELEMENTS_MAX:,} elements, or more than {DEPTH_MAX} in each other. Simplify it."
            )
        if self._size is None:
            if local != "svg" or space not in {SVG_SPACE, ""}:
                raise AssetRefusedError("The file is no SVG: its first element is another one.")
            self._size = _find_size(attributes)
        kept = {} if self._dropped else _keep_attributes(local, attributes)
        if self._dropped or space not in {SVG_SPACE, ""} or local not in ELEMENTS or kept is None:
            self._dropped += 1
            return
        if not self._open:
            kept = {"xmlns": SVG_SPACE, "xmlns:xlink": XLINK_SPACE, **kept}
        parent = self._kept_open[-1] if self._kept_open else None
        self._kept_open.append(len(self._kept))
        self._kept.append(SvgPart(local, kept, parent))
        self._open.append(local)
        self._parts.append(f"<{local}{''.join(f' {key}={quoteattr(value)}' for key, value in kept.items())}>")

    def end(self, _name: str) -> None:
        if self._dropped:
            self._dropped -= 1
            return
        closed = self._open.pop()
        self._kept_open.pop()
        if closed == "style" and not _LOADS.search(style := "".join(self._style)):
            self._parts.append(escape(style))
            self._sheets.append(style)
        self._style.clear()
        self._parts.append(f"</{closed}>")

    def write_text(self, text: str) -> None:
        if self._dropped or not self._open:
            return
        if self._open[-1] == "style":
            self._style.append(text)
        else:
            self._parts.append(escape(text))

    def finish(self) -> tuple[bytes, tuple[int, int]]:
        assert self._size is not None, "the parser refuses a text without elements"
        check_cost(self._kept, self._sheets)
        return "".join(self._parts).encode(), self._size


def _keep_attributes(element: str, attributes: dict[str, str]) -> dict[str, str] | None:
    """Return the attributes that are kept; None where the element makes no sense without the others."""
    kept: dict[str, str] = {}
    for name, value in attributes.items():
        space, _, local = name.rpartition(" ")
        if not _NAME.fullmatch(local) or local.lower().startswith("on"):
            continue
        if local == "href" and space in {"", XLINK_SPACE}:
            if _OWN_REFERENCE.fullmatch(value) or (element == "image" and _EMBEDDED.fullmatch(value)):
                kept["xlink:href"] = value
        elif space == XML_SPACE and local in {"space", "lang"}:
            kept[f"xml:{local}"] = value
        elif not space and not _LOADS.search(value):
            kept[local] = value
    if element in ANIMATIONS and _changes_references(kept):
        return None
    return kept


def _changes_references(animation: dict[str, str]) -> bool:
    """Return whether an animation changes which parts are drawn with others: nobody could say what that costs."""
    changed = animation.get("attributeName", "").lower()
    return changed.endswith(("href", "class")) or any("url(" in value.lower() for value in animation.values())


def _find_size(attributes: dict[str, str]) -> tuple[int, int]:
    sides = [_LENGTH.fullmatch(attributes.get(name, "")) for name in ("width", "height")]
    if sides[0] and sides[1]:
        found = round(float(sides[0][1])), round(float(sides[1][1]))
        return check_size(*found)
    box = [_parse_number(one) for one in re.split(r"[\s,]+", attributes.get("viewBox", "").strip())]
    match box:
        case [float(), float(), float(width), float(height)] if width > 0 and height > 0:
            # A drawing has no pixels: one of unusual units is as large as its ratio says.
            is_usual = max(width, height) <= USUAL_MAX and min(width, height) >= 1
            scale = 1.0 if is_usual else UNUSUAL_SIDE / max(width, height)
            return check_size(max(1, round(width * scale)), max(1, round(height * scale)))
        case _:
            return DEFAULT_SIZE


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e9 else None  # noqa: PLR2004 - nothing is drawn as large; also not NaN
