"""The alert rules and dashboards that come with the documentation: what Prometheus says of them."""

import json
import re
from pathlib import Path

import pytest

from tests.support.promtool import ALERTS, DASHBOARDS, find_expressions, needs_promtool, run_promtool


@needs_promtool
@pytest.mark.parametrize(("what", "file"), [("check", "alerts.yml"), ("test", "alerts.test.yml")])
def test_prometheus_accepts_the_alerts_and_incidents_raise_them(what: str, file: str) -> None:
    assert run_promtool(what, "rules", file) == ""


@needs_promtool
def test_every_query_of_a_dashboard_can_be_parsed(tmp_path: Path) -> None:
    queries = [
        expression.replace("$__rate_interval", "5m")
        for board in DASHBOARDS
        for expression in find_expressions(board)
    ]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "queries.json"
    file.write_text(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}))

    assert len(queries) > 50
    assert run_promtool("check", "rules", str(file)) == ""


def test_dashboards_have_ids_of_their_own_and_take_any_data_source() -> None:
    boards = [json.loads(one.read_text(encoding="utf-8")) for one in DASHBOARDS]

    assert len({board["uid"] for board in boards}) == len(boards) == 3
    sources = [
        panel["datasource"]["uid"] for board in boards for panel in board["panels"] if panel["type"] != "row"
    ]
    assert set(sources) == {"${datasource}"}


def test_panels_have_ids_and_places_of_their_own_and_use_variables_that_are_there() -> None:
    for file in DASHBOARDS:
        board = json.loads(file.read_text(encoding="utf-8"))
        panels, known = board["panels"], {one["name"] for one in board["templating"]["list"]}
        cells = [
            (x, y)
            for place in (panel["gridPos"] for panel in panels)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]

        assert len({panel["id"] for panel in panels}) == len(panels)
        assert len(set(cells)) == len(cells)
        assert max(x for x, _ in cells) < 24
        used = {name for text in find_expressions(file) for name in re.findall(r"\$(\w+)", text)}
        assert used - {"__rate_interval"} <= known, file
        for panel in panels:
            names = [target["refId"] for target in panel.get("targets", ())]
            assert len(set(names)) == len(names), panel["title"]
            # Grafana's types have no legend without them.
            assert panel["type"] != "timeseries" or panel["options"]["legend"]["calcs"] == []


def test_every_alert_says_what_happened_and_what_to_do() -> None:
    text = ALERTS.read_text(encoding="utf-8")

    assert text.count("- alert: ") == text.count("summary: ") == text.count("description: ") > 30
    assert text.count("severity: critical") + text.count("severity: warning") == text.count("- alert: ")
