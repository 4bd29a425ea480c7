"""What the alerts and dashboards in `docs/monitoring` ask Prometheus for."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "monitoring"
ALERTS = FOLDER / "alerts.yml"
DASHBOARDS = sorted(FOLDER.glob("*.json"))
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed: it comes with Debian's package prometheus"
)
_METRIC = re.compile(r"\b(?:adloom|process)_[a-z_]+")
_TYPE = re.compile(r"^# TYPE (\w+) (\w+)$", re.MULTILINE)
_PARTS_OF_A_HISTOGRAM = ("_bucket", "_sum", "_count")


def run_promtool(*arguments: str, text: str = "") -> str:
    """Return what promtool has to object to."""
    assert PROMTOOL is not None
    done = subprocess.run(
        [PROMTOOL, *arguments], cwd=FOLDER, input=text, capture_output=True, text=True, check=False
    )
    return done.stderr or (done.stdout if done.returncode else "")


def find_expressions(board: Path) -> list[str]:
    """Return the queries of a dashboard."""
    panels: list[dict[str, Any]] = json.loads(board.read_text(encoding="utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def find_metrics() -> set[str]:
    """Return every metric that an alert or a dashboard names."""
    texts = [ALERTS.read_text(encoding="utf-8"), *(one.read_text(encoding="utf-8") for one in DASHBOARDS)]
    return {name for text in texts for name in _METRIC.findall(text)}


def find_exported(text: str) -> set[str]:
    """Return the names of series that a process exports, also of those that have no sample yet."""
    names: set[str] = set()
    for name, kind in _TYPE.findall(text):
        names |= {f"{name}{part}" for part in _PARTS_OF_A_HISTOGRAM} if kind == "histogram" else {name}
    return names
