"""Names given by users stay text: in tooltips of charts, and in attributes of elements."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from adloom import console
from adloom.console.components.charts.chart import build_scatter_options

NAME = "<img src=x onerror=window.pwned=1>"


def test_a_tooltip_shows_a_name_as_text() -> None:
    options = build_scatter_options({"feed": [(9.0, 7.01, NAME)]}, across="eCPM", up="`${price}`")

    assert options["series"][0]["data"] == [[9.0, 7.01, NAME, 1]]
    assert options["tooltip"][":formatter"] == (
        '(one) => adloom.lines(one.value[2], "eCPM: " + adloom.number(one.value[0]), '
        '"`${price}`: " + adloom.number(one.value[1]), one.value[3] > 1 && `\u00d7 ${one.value[3]}`)'
    )


def test_only_constants_are_written_into_parsed_strings() -> None:
    """See `set_attributes`: other values go through `set_attributes`."""
    root = Path(console.__file__).parent
    found = [
        f"{path.relative_to(root)}:{call.lineno} {ast.unparse(value)}"
        for path in root.rglob("*.py")
        for call in _find_calls("props", ast.parse(path.read_text()))
        for value in _values(call)
        if not _is_constant(value)
    ]

    assert found == []


def test_every_class_of_the_console_has_a_rule() -> None:
    root = Path(console.__file__).parent
    rules = "".join(
        path.read_text() for path in (root / "assets").iterdir() if path.suffix in {".css", ".js"}
    )
    used = {
        name for path in root.rglob("*.py") for name in re.findall(r"(?<![\w-])al-[\w-]*\w", path.read_text())
    }

    assert sorted(name for name in used if name not in rules) == []


def _find_calls(name: str, tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node


def _values(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments of a call, and the expressions in its f-strings."""
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        if isinstance(argument, ast.JoinedStr):
            yield from (part.value for part in argument.values if isinstance(part, ast.FormattedValue))
        else:
            yield argument


def _is_constant(value: ast.expr) -> bool:
    match value:
        case ast.Constant():
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.Subscript(value=of):
            return _is_constant(of)
        case _:
            return False
