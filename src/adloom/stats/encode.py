"""Statistics as JSON or CSV, with the same names in both; no model per row, since answers may be long."""

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from adloom.core.money import paisa_from_micros
from adloom.stats.model import Counts, Grouping, Key, StatsRow, total

# Names of the parts of a key.
NAMES: Final = {
    Grouping.DAY: "date",
    Grouping.HOUR: "hour",
    Grouping.BANNER: "bannerId",
    Grouping.PLACEMENT: "placementId",
    Grouping.CAMPAIGN: "campaignId",
    Grouping.COUNTRY: "country",
    Grouping.DEVICE: "device",
}


def json_of(groupings: Sequence[Grouping], rows: Sequence[StatsRow]) -> bytes:
    """Encode rows and totals; a row has only the fields of the groupings."""
    names = [NAMES[grouping] for grouping in groupings]
    return msgspec.json.encode(
        {
            "items": [dict(zip(names, row.key, strict=True)) | _figures(row.counts) for row in rows],
            "totals": _figures(total(rows)),
        }
    )


def csv_of(groupings: Sequence[Grouping], rows: Sequence[StatsRow]) -> bytes:
    """Encode rows as CSV (RFC 4180), without totals.

    No cell holds free text, so none can be taken for a formula.
    """
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow([*(NAMES[grouping] for grouping in groupings), *_figures(Counts())])
    writer.writerows([*map(_cell, row.key), *_figures(row.counts).values()] for row in rows)
    return sheet.getvalue().encode()


def _figures(counts: Counts) -> dict[str, Any]:
    return {
        "impressions": counts.impressions,
        "clicks": counts.clicks,
        "ctr": counts.ctr,
        # Rounded down in every row, so the total may exceed the sum of the rows.
        "spendPaisa": None if counts.spend is None else paisa_from_micros(counts.spend),
        "invalidImpressions": counts.invalid_impressions,
        "invalidClicks": counts.invalid_clicks,
    }


def _cell(part: Key) -> str:
    if part is None:
        return ""
    return f"{part.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if isinstance(part, datetime) else str(part)
