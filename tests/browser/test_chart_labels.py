"""Labels of charts, as Chromium draws them: none is cut at the edge of its chart."""

import json
from pathlib import Path
from typing import Any, cast

import nicegui
import pytest
from playwright.sync_api import Browser, Route

from adloom.console.components.charts.chart import Series, build_chart_options
from tests.support.chromium import a_visit

pytestmark = pytest.mark.browser

BUNDLE = Path(nicegui.__file__).parent / "elements/echart/dist"
PAGE = """
    <!doctype html><style>body { margin: 0 } div { height: 240px }</style><div></div>
    <script type="module">
      import { echarts } from "/index.js"
      window.draw = (options, width) => {
        const element = document.querySelector("div")
        element.style.width = `${width}px`
        const chart = echarts.init(element, null, { renderer: "svg" })
        chart.setOption(options)
        const edge = element.getBoundingClientRect()
        const found = [...element.querySelectorAll("text")].map((text) => {
          const box = text.getBoundingClientRect()
          return [text.textContent, box.left - edge.left, edge.right - box.right]
        })
        chart.dispose()
        return found
      }
    </script>
"""


def without_scripts(options: Any) -> Any:
    """Return options without the colours and texts that the console's own script computes."""
    match options:
        case dict():
            parts = cast("dict[str, Any]", options)
            return {name: without_scripts(one) for name, one in parts.items() if not name.startswith(":")}
        case list():
            return [without_scripts(one) for one in cast("list[Any]", options)]
        case _:
            return options


def answer(route: Route) -> None:
    name = route.request.url.rpartition("/")[2]
    if name:
        route.fulfill(path=BUNDLE / name)
    else:
        route.fulfill(body=PAGE, content_type="text/html")


@pytest.mark.parametrize("kind", ["line", "bar"])
def test_no_label_of_a_chart_is_cut_at_its_edge(kind: Any, chromium: Browser) -> None:
    hours = [f"11-15 {hour:02}:00" for hour in range(24)]
    names = ["A campaign with a rather long name", "Autumn", "Another campaign with a rather long name"]
    with a_visit(chromium) as visit:
        visit.page.route("**/*", answer)
        visit.page.goto("http://charts.test/")
        visit.page.wait_for_function("window.draw !== undefined")
        for labels in (hours, hours[:2], hours[:1], names):
            series = Series(name="Clicks", values=[*range(len(labels))], kind=kind)
            options = json.dumps(without_scripts(build_chart_options(labels, [series])))

            for width in (320, 900):
                drawn: list[tuple[str, float, float]] = visit.page.evaluate(f"draw({options}, {width})")

                assert drawn
                assert [one for one in drawn if min(one[1:]) < 0] == [], width
