"""Statistics: the filter, the groupings, the rows; and how they are written as JSON or CSV, with the same names in both."""

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.formula import quote_formula
from adloom.core.money import Micros, decimal_from_micros, paisa_from_micros

CTR_PLACES: Final = 6
UNKNOWN: Final = "unknown"  # A country or a device, of which we count an empty text.
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode


class Grouping(StrEnum):
    """What a row of the statistics is grouped by; several may be combined."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    HOUR = "hour"
    BANNER = "banner"
    PLACEMENT = "placement"
    CAMPAIGN = "campaign"
    ADVERTISER = "advertiser"
    PUBLISHER = "publisher"
    SITE = "site"
    DELIVERY = "delivery"
    COUNTRY = "country"
    DEVICE = "device"


# Rolled-up days have nothing finer than a day, and no visitor fields; spend has no visitor fields at all.
OF_READERS: Final = frozenset({Grouping.COUNTRY, Grouping.DEVICE})
ONLY_LIVE: Final = OF_READERS | {Grouping.HOUR}

UTC_ZONE: Final = ZoneInfo("UTC")

Key: TypeAlias = date | datetime | UUID | str | None


class StatsQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A filter on counts; both days are included.

    An empty country or device means events where it is unknown.
    """

    first: date
    last: date
    groupings: tuple[Grouping, ...]
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None
    country: str | None = None
    device: str | None = None
    # The account whose counts may be seen, or None for all.
    advertiser_id: UUID | None = None
    publisher_id: UUID | None = None
    zone: ZoneInfo = UTC_ZONE  # Of days; an hour counts for the day in which it begins.
    is_shared: bool = True  # Whether the spend that a publisher is shown is its share.
    # Whether what is given back counts when that is done, as in bills that are paid; else it is taken from its charge.
    counts_refunds_when_made: bool = False
    counts_unbound: bool = False  # Whether events without a token are among the others.

    @property
    def needs_live_counts(self) -> bool:
        """Whether rolled-up days cannot answer this."""
        return self.is_of_readers or not ONLY_LIVE.isdisjoint(self.groupings) or self.zone.key != UTC_ZONE.key

    @property
    def is_of_readers(self) -> bool:
        """Whether it groups or filters by visitor fields, for which spend is unknown."""
        return (
            not OF_READERS.isdisjoint(self.groupings) or self.country is not None or self.device is not None
        )


class Counts(msgspec.Struct, frozen=True):
    """Impressions and clicks, invalid ones included, those without a token apart, conversions, and what was charged; None is unknown."""

    impressions: int = 0
    clicks: int = 0
    invalid_impressions: int = 0
    invalid_clicks: int = 0
    unbound_impressions: int = 0
    unbound_clicks: int = 0
    over_budget_clicks: int | None = 0
    conversions: int | None = 0
    conversion_value: Micros | None = Micros(0)
    spend: Micros | None = Micros(0)

    def with_unbound(self) -> "Counts":
        """Return the same counts, with events without a token among the others."""
        return msgspec.structs.replace(
            self,
            impressions=self.impressions + self.unbound_impressions,
            clicks=self.clicks + self.unbound_clicks,
        )

    @property
    def ctr(self) -> float:
        """Clicks per impression; 0 without impressions."""
        return round(self.clicks / self.impressions, CTR_PLACES) if self.impressions else 0.0


class StatsRow(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one key, with a part for each grouping; None for no campaign, or unknown."""

    key: tuple[Key, ...]
    counts: Counts


def sum_rows(rows: Sequence[StatsRow]) -> Counts:
    """Sum rows; a value that is unknown in one row is unknown in the sum."""
    counts = [row.counts for row in rows]
    return Counts(*(_sum_known([getattr(one, name) for one in counts]) for name in Counts.__struct_fields__))


def _sum_known(numbers: Sequence[int | None]) -> Any:  # noqa: ANN401 - a count or micros, or None
    return None if None in numbers else sum(filter(None, numbers))


# Names of the parts of a key.
NAMES: Final = {
    Grouping.DAY: "date",
    Grouping.WEEK: "week",
    Grouping.MONTH: "month",
    Grouping.HOUR: "hour",
    Grouping.BANNER: "bannerId",
    Grouping.PLACEMENT: "placementId",
    Grouping.CAMPAIGN: "campaignId",
    Grouping.ADVERTISER: "advertiserId",
    Grouping.PUBLISHER: "publisherId",
    Grouping.SITE: "siteId",
    Grouping.DELIVERY: "delivery",
    Grouping.COUNTRY: "country",
    Grouping.DEVICE: "device",
}
# The other parts of a key, beside ids.
TITLES: Final = {
    Grouping.BANNER: "bannerTitle",
    Grouping.PLACEMENT: "placementLabel",
    Grouping.CAMPAIGN: "campaignName",
    Grouping.ADVERTISER: "advertiserName",
    Grouping.PUBLISHER: "publisherName",
    Grouping.SITE: "siteName",
}


class NamedKeys:
    """The fields of a key: its parts, and the names of those that are ids."""

    def __init__(self, groupings: Sequence[Grouping], names: Mapping[UUID, str]) -> None:
        self._named = [(place, TITLES[one]) for place, one in enumerate(groupings) if one in TITLES]
        self._names = names
        self.fields = [*(NAMES[one] for one in groupings), *(title for _, title in self._named)]

    def list_names(self, key: Sequence[Key]) -> list[str | None]:
        parts = (key[place] for place, _ in self._named)
        return [self._names.get(part) if isinstance(part, UUID) else None for part in parts]


def write_json(
    groupings: Sequence[Grouping],
    rows: Sequence[StatsRow],
    names: Mapping[UUID, str] | None = None,
    **besides: object,
) -> bytes:
    """Encode rows and totals; a row has only the fields of the groupings, with the names of ids."""
    keys = NamedKeys(groupings, names or {})
    return _encode(
        {
            **besides,
            "items": [
                dict(zip(keys.fields, (*row.key, *keys.list_names(row.key)), strict=True))
                | describe_counts(row.counts)
                for row in rows
            ],
            "totals": describe_counts(sum_rows(rows)),
        }
    )


IN_SHEETS_OF_PUBLISHERS: Final = {"spend": "revenue", "spendPaisa": "revenuePaisa"}


def write_csv(  # noqa: PLR0913 - what a sheet is made of
    groupings: Sequence[Grouping],
    rows: Sequence[StatsRow],
    names: Mapping[UUID, str] | None = None,
    *,
    currency: str = "",
    columns: Sequence[str] = (),
    is_of_publisher: bool = False,
) -> bytes:
    """Encode rows as CSV (RFC 4180), without totals; `columns` are the figures that are wanted, if not all.

    `spend` has units of the currency, which is in the last column. Names are free text: one that a spreadsheet
    would take for a formula gets an apostrophe before it. What advertisers spend is a publisher's revenue.
    """
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\r\n")
    keys = NamedKeys(groupings, names or {})
    wanted = columns or (*describe_counts(Counts()), "spend")
    called = IN_SHEETS_OF_PUBLISHERS if is_of_publisher else {}
    writer.writerow([*keys.fields, *(called.get(one, one) for one in wanted), "currency"])
    for row in rows:
        spend = None if row.counts.spend is None else _write_units(row.counts.spend)
        figures = describe_counts(row.counts) | {"spend": spend}
        named = (quote_formula(name or "") for name in keys.list_names(row.key))
        writer.writerow([*map(_write_cell, row.key), *named, *(figures[one] for one in wanted), currency])
    return sheet.getvalue().encode()


def _write_units(micros: Micros) -> str:
    """Write hundredths as units: rounded down, as `spendPaisa` is."""
    return f"{paisa_from_micros(micros) / 100:.2f}"


def describe_counts(counts: Counts) -> dict[str, Any]:
    return {
        "impressions": counts.impressions,
        "clicks": counts.clicks,
        "ctr": counts.ctr,
        # Rounded down in every row, so the total may exceed the sum of the rows.
        "spendPaisa": None if counts.spend is None else paisa_from_micros(counts.spend),
        "invalidImpressions": counts.invalid_impressions,
        "invalidClicks": counts.invalid_clicks,
        "unboundImpressions": counts.unbound_impressions,
        "unboundClicks": counts.unbound_clicks,
        "overBudgetClicks": counts.over_budget_clicks,
        "conversions": counts.conversions,
        "conversionValue": None
        if counts.conversion_value is None
        else _convert_amount(counts.conversion_value),
    }


def _convert_amount(micros: Micros) -> Decimal:
    """Return an amount without zeros at its end."""
    text = f"{decimal_from_micros(micros):f}"
    return Decimal(text.rstrip("0").rstrip("."))


def _write_cell(part: Key) -> str:
    if part is None:
        return ""
    return f"{part.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if isinstance(part, datetime) else str(part)
