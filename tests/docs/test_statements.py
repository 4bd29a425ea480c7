"""Statements of the documentation are compared with the code: settings, commands, files, links."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from adloom.cli.main import app
from adloom.cli.simulate.commands import app as market
from tests.docs.pages import ROOT, SETTINGS, pages, pages_about_the_code, prose, runnable_blocks
from tests.support.for_each import for_each

SOURCE = ROOT / "src" / "adloom"
VARIABLE = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
OURS = re.compile(r"\b(?:ADLOOM|JWT)_[A-Z_]*[A-Z]\b")
READ_ELSEWHERE = re.compile(r'(?:(?:variables\.get|environ\.get|envvar=)\(?"|"(?=ADLOOM_))([A-Z_]+)"')
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FILE = re.compile(r"`([\w/.-]+(?:\.py|/))`")
FIXED_PLACE = re.compile(r"127\.0\.0\.1:\d|localhost:\d|/var/lib/adloom")
# In code: at the beginning of a span, or of a command.
COMMAND = re.compile(r"(?:`|^|\$\()(?:uv run )?adloom ([a-z][^`|;)#&>\n]*)", re.MULTILINE)
DATE = re.compile(r"\$\(date [^)]*\)")
ADLOOM, MARKET = get_command(app), get_command(market)
PRINTED = "ready"  # `adloom ready` is a line that `up` prints.
# Not a setting of the product: the path to programs.
NOT_OURS = {"PATH"}


def variables_read() -> set[str]:
    """Return the variables that files of settings name, and those that other modules read."""
    named = {
        node.value
        for path in (SOURCE / "runtime").rglob("*settings.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and VARIABLE.fullmatch(node.value)
    }
    elsewhere = {
        name
        for path in SOURCE.rglob("*.py")
        for name in READ_ELSEWHERE.findall(path.read_text(encoding="utf-8"))
    }
    return {*named, *elsewhere} - NOT_OURS


def test_every_setting_is_in_the_table_and_no_page_names_another() -> None:
    rows = [line for line in SETTINGS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    first_cells = " ".join(row.split("|")[1] for row in rows)

    read = variables_read()

    assert len(read) > 100
    assert {name for name in read if f"`{name}`" not in first_cells} == set()
    guide = (ROOT / "docs" / "guide").glob("*.md")
    named = {name for page in guide for name in OURS.findall(page.read_text(encoding="utf-8"))}
    assert named - read == set()


@for_each("page", pages())
def test_every_link_within_the_repository_has_a_target(page: Path) -> None:
    links = [link for link in LINK.findall(prose(page)) if "://" not in link]

    assert [link for link in links if not leads_somewhere(page, link)] == []


def test_commands_name_no_port_and_no_data_directory() -> None:
    blocks = runnable_blocks(*(page.relative_to(ROOT).as_posix() for page in pages()))

    assert len(blocks) > 50
    assert [block for block in blocks if FIXED_PLACE.search(block)] == []


def test_every_page_of_the_guide_is_in_its_index() -> None:
    guide = ROOT / "docs" / "guide"
    linked = set(LINK.findall((guide / "README.md").read_text(encoding="utf-8")))

    assert {page.name for page in guide.glob("*.md")} - linked == {"README.md"}


@for_each("page", pages_about_the_code())
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = set(FILE.findall(prose(page)))

    assert {name for name in named if not is_there(name)} == set()


@for_each("page", pages())
def test_every_command_that_a_page_names_takes_its_words(page: Path) -> None:
    text = DATE.sub("DAY", page.read_text(encoding="utf-8"))
    named = {words.rstrip() for words in COMMAND.findall(text)} - {PRINTED}

    refused = {words: why for words in named if (why := why_refused(words))}

    assert refused == {}


@pytest.mark.parametrize(
    "words",
    [
        "ledger replay frequency",
        "ledger replya",
        "up --nothing",
        "token --roles admin",
        "simulate market --seeed 1",
    ],
)
def test_a_command_line_that_nothing_takes_is_found(words: str) -> None:
    assert why_refused(words) is not None


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return False
    return not anchor or anchor in {anchor_of(title) for title in HEADING.findall(prose(target))}


def anchor_of(title: str) -> str:
    """Name the anchor of a heading as GitHub does."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def is_there(name: str) -> bool:
    """Return whether a name is a path of the repository or of the package, or the end of one."""
    return any((base / name).exists() for base in (ROOT, SOURCE)) or any(SOURCE.rglob(name))


def why_refused(words: str) -> str | None:
    """Say why the command line refuses these words; None if it takes them. Values are not checked."""
    command, rest = ADLOOM, shlex.split(words)
    while True:
        context = command.make_context(None, [], resilient_parsing=True)
        context.resilient_parsing = False
        try:
            _, rest, _ = command.make_parser(context).parse_args(rest)
        except Exception as error:  # noqa: BLE001 - Typer's own Click has no public name
            # An option may be named without a value.
            return None if "requires an argument" in str(error) else str(error)
        if not rest or rest == ["…"]:
            return None
        if rest[0] == "market":  # `adloom simulate` passes its words on.
            command, rest = MARKET, rest[1:]
        elif not isinstance(command, TyperGroup):
            return None if context.allow_extra_args else f"{rest[0]!r} is too much."
        elif rest[0] in command.commands:
            command, rest = command.commands[rest[0]], rest[1:]
        else:
            return f"There is no command {rest[0]!r}."
