"""A document as one CSV: a row an item, its kind in the first column, and the columns of all lists.

Text is written as it is; numbers, true and false, lists and objects as in JSON. An empty cell empties a field
that may be empty; a column that is left out leaves its field alone. A text that a spreadsheet would take for a
formula gets an apostrophe before it, and so does an empty text, to tell it from none.
"""

# pure

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from adloom.core.errors import FieldProblem, ValidationFailedError, make_field_error
from adloom.core.formula import QUOTE, escape_formula, quote_formula, unquote_formula
from adloom.resource.spec import DocumentLists, ResourceSpec
from adloom.resource.transfer.document import RawItem, check_count

KIND_COLUMN: Final = "kind"
KEY_COLUMN: Final = "key"
SEEN_COLUMN: Final = "updatedAt"  # No export has it: a document that is stale is refused by it.
DELIMITERS: Final = ",;\t"
CELL_LENGTH_MAX: Final = 1_000_000
WORDS: Final = {"true": True, "false": False, "null": None}


class CellTypes(msgspec.Struct, frozen=True):
    """How the cells of a list are read: which columns are text, and which may be empty."""

    text: frozenset[str]
    nullable: frozenset[str]


def read_csv(body: bytes, known: DocumentLists) -> list[RawItem]:
    """Take a sheet apart into the items of a document."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _make_wrong_error("body", 'must be UTF-8; in a spreadsheet save as "CSV UTF-8"') from None
    delimiter = text[len(KIND_COLUMN) : len(KIND_COLUMN) + 1]
    if not text.startswith(KIND_COLUMN) or delimiter not in set(DELIMITERS):
        raise _make_wrong_error("row 1", f"must be the names of the columns, the first of them {KIND_COLUMN}")
    csv.field_size_limit(CELL_LENGTH_MAX)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(rows)
        _check_header(header, known)
        return list(_iterate_items(header, rows, known))
    except csv.Error as error:
        raise _make_wrong_error(f"line {rows.line_num}", f"is not CSV that can be read: {error}") from error


def write_csv(lists: Mapping[ResourceSpec[Any], Sequence[Mapping[str, Any]]]) -> bytes:
    columns = list(dict.fromkeys(alias for spec in lists for alias in spec.aliases.values()))
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow([KIND_COLUMN, *columns])
    for spec, items in lists.items():
        for item in items:
            writer.writerow([spec.kind, *(write_cell(item.get(column)) for column in columns)])
    return sheet.getvalue().encode()


def write_cell(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Write a value so that it is read back as itself."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return escape_formula(msgspec.json.encode(value).decode())
    return quote_formula(value) or QUOTE


def read_cell(cell: str, *, is_text: bool) -> Any:  # noqa: ANN401 - any JSON
    """Read a value that is not empty."""
    if is_text:
        return unquote_formula(cell)
    word = cell.strip().lower()
    if word in WORDS:
        return WORDS[word]
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, RecursionError):
        return cell  # The shape of the field will say what it should have been.


@cache
def read_cell_types(spec: ResourceSpec[Any]) -> CellTypes:
    """Read off the body of a list, and off what others decide, how its cells are read."""
    text = {KEY_COLUMN, SEEN_COLUMN, *(spec.aliases[name] for name in (*spec.identity, *spec.references))}
    text |= {"status"} if spec.status else set()
    nullable: set[str] = set()
    for model in (spec.body, spec.decisions):
        schema = model.model_json_schema()
        for alias, field in schema.get("properties", {}).items():
            types = set(_iterate_types(field, schema))
            text |= {alias} if "string" in types else set()
            nullable |= {alias} if "null" in types else set()
    return CellTypes(frozenset(text), frozenset(nullable))


def _iterate_types(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[str]:
    for part in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        yield from _iterate_types(part, whole)
    if "$ref" in schema:
        yield from _iterate_types(whole["$defs"][schema["$ref"].rsplit("/", 1)[-1]], whole)
    types = schema.get("type", ())
    yield from [types] if isinstance(types, str) else types


def _iterate_items(
    header: Sequence[str], rows: Iterator[list[str]], known: DocumentLists
) -> Iterator[RawItem]:
    problems: list[FieldProblem] = []
    for number, row in enumerate(rows, 2):
        check_count(number - 1)
        if not any(row):
            continue
        spec = known.by_kind.get(row[0])
        if spec is None:
            names = ", ".join(known.by_kind)
            problems.append(FieldProblem(f"row {number}.{KIND_COLUMN}", f"must be one of {names}"))
        elif len(row) > len(header):
            problems.append(FieldProblem(f"row {number}", "has more cells than there are columns"))
        else:
            item = _read_item(read_cell_types(spec), zip(header[1:], row[1:], strict=False))
            yield RawItem(spec, f"row {number}", msgspec.json.encode(item))
    if problems:
        raise ValidationFailedError("The sheet has rows that cannot be read.", errors=problems[:1_000])


def _read_item(cells: CellTypes, row: Iterator[tuple[str, str]]) -> dict[str, Any]:
    item: dict[str, Any] = {}
    for column, cell in row:
        if cell:
            item[column] = read_cell(cell, is_text=column in cells.text)
        elif column in cells.nullable:
            item[column] = None
    return item


def _check_header(header: Sequence[str], known: DocumentLists) -> None:
    columns = {KIND_COLUMN, KEY_COLUMN, SEEN_COLUMN} | {
        alias for spec in known.specs for alias in spec.aliases.values()
    }
    unknown = [column for column in header if column not in columns]
    twice = {column for column in header if header.count(column) > 1}
    problems = [FieldProblem(f"row 1.{column[:100]}", "is not a column that we know") for column in unknown]
    problems += [FieldProblem(f"row 1.{column[:100]}", "is there twice") for column in sorted(twice)]
    if problems:
        raise ValidationFailedError("The sheet has columns that we do not know.", errors=problems[:100])


def _make_wrong_error(field: str, message: str) -> ValidationFailedError:
    return make_field_error(field, message, f"{field}: {message}.")
