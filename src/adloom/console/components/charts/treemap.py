"""What a site is about, as areas: the roots of the taxonomy, and in them the categories of its pages."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from adloom.console.client import Json
from adloom.console.components.charts.chart import COLOURS, FONT, TOOLTIP, ThemedChart

LABEL_AREA_MIN: Final = 900  # In square pixels: a label in less room says nothing.


class TreemapPart(msgspec.Struct, frozen=True, kw_only=True):
    """A category with the number of its pages; `path` are the names from its root down to its own."""

    id: str
    path: Sequence[str]
    pages: int


def build_treemap_options(parts: Sequence[TreemapPart]) -> dict[str, Any]:
    """Arrange the parts below their roots; a root's own pages are an area in it like any other."""
    roots: dict[str, list[TreemapPart]] = {}
    for part in parts:
        roots.setdefault(part.path[0], []).append(part)
    ordered = sorted(roots.items(), key=lambda item: -sum(part.pages for part in item[1]))
    return {
        "animation": False,
        "textStyle": FONT,
        "tooltip": TOOLTIP
        | {
            ":formatter": "(one) => adloom.lines(one.data.path, one.value === 1 ? '1 page' : adloom.number(one.value) + ' pages')",
        },
        "series": [
            {
                "type": "treemap",
                "roam": False,
                "nodeClick": False,
                "breadcrumb": {"show": False},
                "left": 0, "top": 0, "right": 0, "bottom": 0,
                "label": {"show": True, ":color": "adloom.ink('on-mark')", "fontSize": 12, "overflow": "truncate"},
                "upperLabel": {"show": True, "height": 22, ":color": "adloom.ink('ink')", "fontSize": 12},
                "visibleMin": LABEL_AREA_MIN,
                "levels": [
                    {
                        "itemStyle": {":borderColor": "adloom.ink('card')", "borderWidth": 0, "gapWidth": 4},
                        "upperLabel": {"show": False},
                    },
                    {"itemStyle": {":borderColor": "adloom.ink('soft')", "borderWidth": 3, "gapWidth": 2}},
                    {"colorSaturation": [0.35, 0.55], "itemStyle": {"gapWidth": 1}},
                ],
                "data": [_build_root(name, own, index) for index, (name, own) in enumerate(ordered)],
            }
        ],
    }  # fmt: skip


def _build_root(name: str, parts: Sequence[TreemapPart], index: int) -> dict[str, Any]:
    return {
        "name": name,
        "path": name,
        "value": sum(part.pages for part in parts),
        "itemStyle": {":color": f"adloom.ink('c{index % COLOURS + 1}')"},
        "children": [
            {
                "id": part.id,
                "name": part.path[-1],
                "path": " › ".join(part.path),
                "value": part.pages,
            }
            for part in sorted(parts, key=lambda part: -part.pages)
        ],
    }


def add_treemap(
    parts: Sequence[TreemapPart], *, on_choose: Callable[[str], object], description: str
) -> None:
    """Show the chart; `on_choose` is called with the id of the category that is clicked."""

    def choose(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        part: Json = event.data
        if "id" in part:
            on_choose(part["id"])

    ThemedChart(build_treemap_options(parts), description=description, on_point_click=choose)
