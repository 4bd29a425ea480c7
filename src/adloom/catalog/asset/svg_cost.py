"""How long a browser takes to draw an SVG, about: parts that use parts that use parts make a small file endless.

The unit is a simple shape. Everything is counted as often as it may be drawn, and rather too often: what inherits a
pattern draws it, and each point of a path has its marker.
"""

# pure

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote

import msgspec

from adloom.catalog.asset.model import AssetRefusedError

COST_MAX: Final = 100_000  # About as long as a page takes to load.
DEPTH_MAX: Final = 120  # Of parts in parts and their uses.
SELECTORS_MAX: Final = 20_000  # Programs that draw write some hundreds.
# What takes longer than a shape; a filter's effects work on every pixel of what they are for.
WEIGHTS: Final = {"stop": 0, "use": 5, "mask": 10, "feTurbulence": 500}
EFFECT_WEIGHT: Final = 50
EVERYTHING: Final = "*"

_REFERENCE: Final = re.compile(r"url\(\s*(?:'#([^']*)'|\"#([^\"]*)\"|#([^)'\"]*))", re.IGNORECASE)
_BRACE: Final = re.compile(r"([{}])")
_DECLARATION_END: Final = re.compile(r"[;{}]")
_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
# The last part of a selector: an element's name, and classes and ids.
_SELECTED: Final = re.compile(r"([A-Za-z][\w-]*)?((?:[.#][\w-]+)*)")
# What children do not inherit.
_OWN: Final = frozenset({"clip-path", "mask", "filter"})


class TooCostlyError(AssetRefusedError):
    """A browser would draw for so long that the page around the drawing stands still."""

    def __init__(self) -> None:
        super().__init__(
            "The SVG uses its own parts, masks or filters so often that a browser would take too long to draw it. "
            "Simplify it, or save it as PNG or WebP."
        )


class SvgPart(msgspec.Struct, frozen=True):
    """An element that is kept; `parent` is the position of the one that it is in."""

    name: str
    attributes: Mapping[str, str]
    parent: int | None


class _References(NamedTuple):
    """What is drawn with an element: for it alone, for all in it, and for each point of these."""

    own: list[str]
    inherited: list[str]
    markers: list[str]


class _Cost(NamedTuple):
    """How many elements are drawn with one, itself included; how many points they have; and the cost of all that."""

    drawn: int
    points: int
    cost: int


def check_cost(parts: Iterable[SvgPart], sheets: Iterable[str]) -> None:
    """Raise TooCostlyError where a drawing costs too much, or uses itself."""
    drawing = _Drawing(list(parts), "\n".join(sheets))
    if drawing.measure_all() > COST_MAX:
        raise TooCostlyError


class _Drawing:
    def __init__(self, parts: list[SvgPart], sheet: str) -> None:
        self._parts = parts
        self._children = defaultdict[int | None, list[int]](list)
        self._by_id: dict[str, int] = {}
        for position, part in enumerate(parts):
            self._children[part.parent].append(position)
            if "id" in part.attributes:
                self._by_id.setdefault(part.attributes["id"], position)  # As browsers find the first.
        # Then what is said in one place may count in any other.
        self._is_all_inherited = _hands_down(sheet) or any(
            _hands_down(f"{name}:{value}") for part in parts for name, value in part.attributes.items()
        )
        self._rules = self._read_sheet(sheet)
        self._known: dict[int, _Cost | None] = {}
        self._known_rules: dict[str, tuple[int, int, int] | None] = {}
        self._depth = 0

    def measure_all(self) -> int:
        return self._add_up(self._measure(root).cost for root in self._children[None])

    def _measure(self, position: int) -> _Cost:
        if position in self._known:
            known = self._known[position]
            if known is None:  # It is being measured: it would be drawn in itself.
                raise TooCostlyError
            return known
        self._known[position] = None
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise TooCostlyError
        part = self._parts[position]
        drawn, points, cost = 1, _count_points(part), self._weigh(part)
        for one in [*self._children[position], *self._find_used(part)]:
            below = self._measure(one)
            drawn, points, cost = drawn + below.drawn, points + below.points, cost + below.cost
        own, inherited, markers = self._measure_references(self._read_attributes(part))
        for rule in self._list_rules(part):
            of_rule = self._measure_rule(rule)
            own, inherited, markers = own + of_rule[0], inherited + of_rule[1], markers + of_rule[2]
        cost += own + drawn * inherited + points * markers
        self._depth -= 1
        # A bound of its own for each: numbers with thousands of digits take long, too.
        found = _Cost(*(min(number, COST_MAX + 1) for number in (drawn, points, cost)))
        self._known[position] = found
        return found

    def _weigh(self, part: SvgPart) -> int:
        return WEIGHTS.get(part.name, EFFECT_WEIGHT if part.name.startswith("fe") else 1)

    def _measure_references(self, references: _References) -> tuple[int, int, int]:
        own, inherited, markers = (
            self._add_up(self._measure(self._by_id[name]).cost for name in names if name in self._by_id)
            for names in references
        )
        return own, inherited, markers

    def _measure_rule(self, rule: str) -> tuple[int, int, int]:
        if rule not in self._known_rules:
            self._known_rules[rule] = None
            self._known_rules[rule] = self._measure_references(self._rules[rule])
        known = self._known_rules[rule]
        if known is None:
            raise TooCostlyError
        return known

    def _add_up(self, costs: Iterable[int]) -> int:
        return min(sum(costs), COST_MAX + 1)

    def _find_used(self, part: SvgPart) -> list[int]:
        reference = part.attributes.get("xlink:href", "")
        names = _spell(reference[1:]) if reference.startswith("#") else ()
        return [self._by_id[name] for name in names if name in self._by_id]

    def _list_rules(self, part: SvgPart) -> list[str]:
        names = [EVERYTHING, part.name, f"#{part.attributes.get('id', '')}"]
        names += [f".{name}" for name in part.attributes.get("class", "").split()]
        return [name for name in dict.fromkeys(names) if name in self._rules]

    def _read_attributes(self, part: SvgPart) -> _References:
        references = _References([], [], [])
        for name, value in part.attributes.items():
            if name == "style":
                self._read_declarations(value, references)
            else:
                self._sort_in(name, value, references)
        return references

    def _read_declarations(self, text: str, into: _References) -> None:
        for declaration in text.split(";"):
            name, _, value = declaration.partition(":")
            self._sort_in(name.strip().lower(), value, into)

    def _sort_in(self, name: str, value: str, into: _References) -> None:
        found = _find_references(value)
        if name.startswith("marker"):
            into.markers.extend(found)
        elif name in _OWN and not self._is_all_inherited:
            into.own.extend(found)
        else:
            into.inherited.extend(found)

    def _read_sheet(self, sheet: str) -> dict[str, _References]:
        """Read which references a style sheet has, by the class, id or element that they are for."""
        rules = defaultdict[str, _References](lambda: _References([], [], []))
        if sheet.count(",") + sheet.count("{") > SELECTORS_MAX:
            raise TooCostlyError
        # Texts, and between them braces.
        pieces = _BRACE.split(_COMMENT.sub(" ", sheet))
        for position, text in enumerate(pieces):
            if pieces[position - 1 : position + 2] != ["{", text, "}"]:
                # What is in no plain rule may be for everything.
                rules[EVERYTHING].inherited.extend(_find_references(text))
                continue
            references = _References([], [], [])
            self._read_declarations(text, references)
            if any(references):
                selectors = pieces[position - 2].rpartition(";")[2].split(",")
                for selected in {_find_selected(selector) for selector in selectors}:
                    for into, found in zip(rules[selected], references, strict=True):
                        into.extend(found)
        return {name: rule for name, rule in rules.items() if any(rule)}


def _hands_down(text: str) -> bool:
    """Return whether a style says that children inherit what they usually do not, or uses variables."""
    text = text.lower()
    return "var(" in text or (
        "inherit" in text
        and any(
            "inherit" in declaration and any(name in declaration for name in (*_OWN, "all"))
            for declaration in _DECLARATION_END.split(text)
        )
    )


def _find_selected(selector: str) -> str:
    last = re.split(r"[\s>+~]+", selector.strip())[-1]
    found = _SELECTED.fullmatch(last)
    if found is None or not last or found[1] in {"from", "to"}:  # Of an animation.
        return EVERYTHING
    classes_and_ids = re.findall(r"[.#][\w-]+", found[2])
    return classes_and_ids[-1] if classes_and_ids else last


def _find_references(text: str) -> Iterator[str]:
    for found in _REFERENCE.finditer(text):
        yield from _spell(next(filter(None, found.groups()), ""))


def _spell(name: str) -> tuple[str, ...]:
    """Return how the id may be written that an address ends with."""
    return tuple(dict.fromkeys((name.strip(), unquote(name).strip())))


def _count_points(part: SvgPart) -> int:
    return 1 + len(part.attributes.get("d", "")) // 2 + len(part.attributes.get("points", "")) // 4
