"""The pages of the documentation, and the commands in them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "docs" / "guide" / "settings.md"
MONITORING = ROOT / "docs" / "guide" / "monitoring.md"
RUNNABLE = re.compile(r"^```sh run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return every page of the documentation."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def pages_about_the_code() -> list[Path]:
    """Return the pages that name files: those for developers, not for users."""
    return [page for page in pages() if "guide" not in page.relative_to(ROOT).parts]


def runnable_blocks(*names: str) -> list[str]:
    """Return the commands of some pages, in order."""
    return [block for name in names for block in RUNNABLE.findall((ROOT / name).read_text(encoding="utf-8"))]


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))
