"""Reports as JSON or CSV, with the same names in both; decimals keep all digits."""

import csv
import io
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

import msgspec

from adloom.sync.reports.model import Cells, Report

# A text that a spreadsheet would read as a formula is prefixed with an apostrophe.
QUOTE: Final = "'"
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", QUOTE)

_encode = msgspec.json.Encoder(decimal_format="number").encode


def encode_json(report: Report, *, level: str, first: date, last: date) -> bytes:
    return _encode(
        {
            "rows": report.rows,
            "summary": report.summary,
            "summaries": report.summaries,
            "meta": {"dateFrom": first, "dateTo": last, "level": level, "totalRows": len(report.rows)},
        }
    )


def encode_csv(report: Report, columns: Sequence[str]) -> bytes:
    """Encode the rows (RFC 4180), without sums: a spreadsheet can add up."""
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(_format_row(row, columns) for row in report.rows)
    return sheet.getvalue().encode()


def _format_row(row: Cells, columns: Sequence[str]) -> list[str]:
    return [_format_cell(row[column]) for column in columns]


def _format_cell(value: Any) -> str:  # noqa: ANN401 - whatever a report shows
    match value:
        case None:
            return ""
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        case str():
            return QUOTE + value if value.startswith(FORMULA_STARTS) else str(value)
        case _:
            return str(value)
