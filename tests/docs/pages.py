"""The documentation as the tests see it: its pages, and the commands that a reader is told to type."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "docs" / "guide" / "settings.md"
MONITORING = ROOT / "docs" / "guide" / "monitoring.md"
RUNNABLE = re.compile(r"^```sh run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Give every page of the documentation."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def pages_about_the_code() -> list[Path]:
    """Give the pages that name files: those for who works on it, not for who uses it."""
    return [page for page in pages() if "guide" not in page.parts]


def runnable_blocks(*names: str) -> list[str]:
    """Give the commands of some pages, in their order."""
    return [block for name in names for block in RUNNABLE.findall((ROOT / name).read_text(encoding="utf-8"))]


def prose(page: Path) -> str:
    """Give a page without its fenced blocks."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))
