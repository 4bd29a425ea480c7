"""Pure code does no I/O: it is recognised by its package, or by a line `# pure` below a module's docstring."""

import ast
import re
from pathlib import Path

import grimp
import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"
PURE_ROOMS = ("adloom.core", "adloom.auction", "adloom.bidding", "adloom.schedule", "adloom.targeting")
FORBIDDEN = (
    "asyncio",
    "asyncpg",
    "fastapi",
    "logging",
    "os",
    "random",
    "redis",
    "socket",
    "sqlite3",
    "structlog",
    "time",
    "uvicorn",
)
MARKER = re.compile(r"^# pure$", re.MULTILINE)
CLAIM = re.compile(r"\bpure\b", re.IGNORECASE)


def modules() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in SOURCE.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found[name] = path.read_text(encoding="utf-8")
    return found


def is_in_a_pure_room(name: str) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in PURE_ROOMS)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("adloom", include_external_packages=True)


def test_pure_modules_import_nothing_that_does_io(graph: grimp.ImportGraph) -> None:
    pure = {name for name, text in modules().items() if is_in_a_pure_room(name) or MARKER.search(text)}
    chains = [
        " -> ".join(chain)
        for forbidden in FORBIDDEN
        if forbidden in graph.modules
        for name in sorted(pure & graph.modules)
        if (chain := graph.find_shortest_chain(importer=name, imported=forbidden))
    ]

    assert pure
    assert chains == []


def test_a_module_whose_docstring_claims_purity_is_marked() -> None:
    unmarked = [
        name
        for name, text in modules().items()
        if not is_in_a_pure_room(name)
        and not (SOURCE / name.replace(".", "/")).is_dir()
        and not MARKER.search(text)
        and CLAIM.search(text)  # Few have the word at all: parsing takes a hundred times as long.
        and CLAIM.search((ast.get_docstring(ast.parse(text)) or "").split("\n")[0])
    ]

    assert unmarked == []
