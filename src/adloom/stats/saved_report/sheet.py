"""A saved report as CSV: its own columns, or all of them."""

from typing import Final

from adloom.stats.model import csv_of
from adloom.stats.saved_report.definition import Figure, ReportDefinition
from adloom.stats.saved_report.run import ReportResult

# The fields of statistics that a column stands for.
FIELDS: Final = {
    Figure.INVALID: ("invalidImpressions", "invalidClicks"),
    Figure.UNBOUND: ("unboundImpressions", "unboundClicks"),
}


def write_sheet(
    definition: ReportDefinition, result: ReportResult, *, currency: str, is_of_publisher: bool
) -> bytes:
    columns = [field for one in definition.columns for field in FIELDS.get(one, (one.value,))]
    return csv_of(
        definition.group_by,
        result.rows,
        result.names,
        currency=currency,
        columns=columns,
        is_of_publisher=is_of_publisher,
    )
