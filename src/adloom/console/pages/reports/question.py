"""What a report asks for, read from its address, and a page of its rows."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Final
from urllib.parse import urlencode

import msgspec

from adloom.console import strings
from adloom.console.client import Json

DAYS_DEFAULT: Final = 7
FILTERS: Final = ("campaignId", "placementId", "bannerId", "country", "device")
OF_READERS: Final = frozenset({"country", "device"})
# The field of each dimension in the answer.
FIELDS: Final = {
    "day": "date",
    "hour": "hour",
    "campaign": "campaignId",
    "banner": "bannerId",
    "placement": "placementId",
    "country": "country",
    "device": "device",
}


class ReportFilters(msgspec.Struct, frozen=True, kw_only=True):
    """The filters of a report; both days are included."""

    first: date
    last: date
    by: tuple[str, ...] = ("day",)
    metric: str = "impressions"
    filters: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def query(self) -> dict[str, str]:
        return {"from": str(self.first), "to": str(self.last), "groupBy": ",".join(self.by), **self.filters}

    @property
    def has_spend(self) -> bool:
        """Whether the spend is known: charges are not counted by country or device."""
        return OF_READERS.isdisjoint((*self.by, *self.filters))

    def address(self, **changes: object) -> str:
        """Return the address with some changes; None removes a parameter."""
        asked: dict[str, object] = {
            "from": self.first,
            "to": self.last,
            "by": ",".join(self.by),
            "metric": self.metric,
            **self.filters,
            **changes,
        }
        return urlencode({name: value for name, value in asked.items() if value})


def parse_query(query: Mapping[str, str], *, today: date) -> ReportFilters:
    """Parse an address; invalid values become defaults."""
    last = _day(query.get("to")) or today
    first = _day(query.get("from")) or last - timedelta(days=DAYS_DEFAULT - 1)
    by = tuple(dict.fromkeys(one for one in query.get("by", "").split(",") if one in strings.DIMENSIONS))
    metric = query.get("metric", "")
    filters = {name: query[name] for name in FILTERS if query.get(name)}
    asked = ReportFilters(first=min(first, last), last=last, by=by or ("day",), filters=filters)
    known = metric in strings.METRICS and (metric != "spendPaisa" or asked.has_spend)
    return msgspec.structs.replace(asked, metric=metric if known else "impressions")


def find_period(question: ReportFilters, *, today: date) -> str | None:
    """Return the named period that the days form, if any."""
    if question.last != today:
        return None
    length = str((question.last - question.first).days + 1)
    return length if length in strings.PERIODS else None


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def paginate(rows: Sequence[Json], query: Mapping[str, str]) -> Json:
    """Sort and cut rows into a page in the form of the API's lists; unknown values come last."""
    sort = query.get("sort", "")
    field = sort.removeprefix("-")
    ordered = list(rows)
    if rows and field in rows[0]:
        # Unknown values come last in either order.
        known = [row for row in ordered if row[field] is not None]
        known.sort(key=lambda row: row[field], reverse=sort.startswith("-"))
        ordered = [*known, *(row for row in ordered if row[field] is None)]
    size = int(query.get("pageSize", "25"))
    pages = max(1, -(-len(ordered) // size))
    number = min(max(1, int(query["page"])) if query.get("page", "").isdigit() else 1, pages)
    begin = (number - 1) * size
    return {
        "items": ordered[begin : begin + size],
        "totalCount": len(ordered),
        "page": number,
        "pageSize": size,
        "totalPages": pages,
    }
