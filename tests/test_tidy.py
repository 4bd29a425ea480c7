"""Checks that no linter does: sizes, names, docstrings, links and addresses."""

import ast
import functools
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from adloom.runtime.process.tuning import pause_gc

ROOT = Path(__file__).resolve().parent.parent
CODE = ("src/", "bench/", "simulation/")
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
FOLDER_FILES_MAX = 15
EMPTY_NAMES = frozenset(["common", "helpers", "misc", "utils"])
# A folder may have more files for a reason: "path" and why.
CROWDED_FOLDERS: dict[str, str] = {
    "src/adloom/migrations/versions": "one file for each change of the schema, in order",
}
# A function may be longer for a reason: "path::name" and why.
LONG_FUNCTIONS: dict[str, str] = {}
# In parts, so that this file does not name them itself.
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (("pypi", "org"), ("pythonhosted", "org"), ("registry", "npmjs"), ("deb", "debian", "org"))
)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
LATER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


@functools.cache
def files() -> tuple[Path, ...]:
    """Everything that is or could be committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - git on the path
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = {ROOT / name for name in listed.stdout.split("\0") if name}
    return tuple(sorted(path for path in paths if path.is_file()))


@functools.cache
def texts() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for path in files():
        try:
            found.append((str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue  # an image or a font
    return found


def sources(*folders: str) -> list[tuple[str, str]]:
    return [(name, text) for name, text in texts() if name.endswith(".py") and name.startswith(folders)]


@functools.cache
def trees(*folders: str) -> list[tuple[str, ast.Module]]:
    with pause_gc():  # It would walk over all trees again and again.
        return [(name, ast.parse(text)) for name, text in sources(*folders)]


@functools.cache
def definitions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Every function and class of the code, by file."""
    found = trees(*CODE)
    with pause_gc():
        return [
            (name, node) for name, tree in found for node in ast.walk(tree) if isinstance(node, DEFINITIONS)
        ]


@pytest.fixture(autouse=True)
def _in_a_checkout() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")


def test_no_source_file_is_too_long() -> None:
    long = [name for name, text in sources(*CODE) if len(text.splitlines()) > FILE_LINES_MAX]

    assert long == []


def test_no_function_is_too_long_without_a_reason() -> None:
    long = [
        f"{name}::{node.name}"
        for name, node in definitions()
        if not isinstance(node, ast.ClassDef) and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX
    ]

    assert sorted(set(long) - LONG_FUNCTIONS.keys()) == []
    assert sorted(LONG_FUNCTIONS.keys() - set(long)) == [], "a reason without its function"


def test_no_folder_has_too_many_files_without_a_reason() -> None:
    files_by_folder = Counter(
        str(Path(name).parent) for name, _ in sources(*CODE) if not name.endswith("__init__.py")
    )
    crowded = {folder for folder, count in files_by_folder.items() if count > FOLDER_FILES_MAX}

    assert sorted(crowded - CROWDED_FOLDERS.keys()) == []
    assert sorted(CROWDED_FOLDERS.keys() - crowded) == [], "a reason without its folder"


def test_no_class_name_is_used_twice() -> None:
    places: dict[str, list[str]] = {}
    for name, node in definitions():
        if name.startswith("src/") and isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            places.setdefault(node.name, []).append(name)

    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_two_modules_of_tests_have_one_name() -> None:
    names = Counter(Path(name).name for name, _ in sources("tests") if Path(name).name.startswith("test_"))

    assert [name for name, count in names.items() if count > 1] == [], "their folders are no packages"


def test_no_file_has_a_meaningless_name() -> None:
    empty = [name for name, _ in sources(*CODE) if EMPTY_NAMES & set(Path(name).with_suffix("").parts)]

    assert empty == []


def test_every_module_has_a_docstring() -> None:
    silent = [name for name, tree in [*trees(*CODE), *trees("scripts/")] if not ast.get_docstring(tree)]

    assert silent == []


def test_no_file_contains_a_todo() -> None:
    later = [name for name, text in texts() if LATER.search(text)]

    assert later == []


def test_nothing_forgets_the_first_key_of_a_plain_dict() -> None:
    """Its place stays empty, and each look for the first key walks over all such places: use an `OrderedDict`."""
    slow = [name for name, text in sources(*CODE) if re.search(r"del .*\[next\(iter\(", text)]

    assert slow == []


def test_no_log_line_has_a_field_of_all_lines_as_its_own() -> None:
    """Each line says when, how bad and by which process: what the caller says of these is lost."""
    overwritten = [
        f"{name}:{node.lineno}"
        for name, tree in trees(*CODE)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "log"
        and {"timestamp", "level", "process"} & {keyword.arg for keyword in node.keywords}
    ]

    assert overwritten == []


def test_every_decision_record_is_in_the_index() -> None:
    records = [path.name for path in files() if path.parent == ROOT / "docs/decisions"]
    indexes = [ROOT / "ARCHITECTURE.md", ROOT / "docs/decisions/README.md"]
    linked = "".join(path.read_text(encoding="utf-8") for path in indexes if path.is_file())

    assert [name for name in records if name != "README.md" and name not in linked] == []


@pytest.mark.parametrize("host", REGISTRY_HOSTS)
def test_no_address_of_a_package_registry_is_committed(host: str) -> None:
    naming = [name for name, text in texts() if host in text]

    assert naming == []
