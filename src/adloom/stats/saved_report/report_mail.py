"""The e-mail of a report: a short table as text and as HTML, and all rows as CSV beside it."""

from collections.abc import Sequence
from datetime import date, datetime
from html import escape
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from adloom.core.currency import Currency
from adloom.core.money import Micros, paisa_from_micros
from adloom.runtime.mail.send import Attachment, Mail
from adloom.stats.model import Counts, Grouping, Key, StatsRow, write_csv
from adloom.stats.saved_report.period import Days
from adloom.stats.saved_report.run import Figure, ReportDefinition, ReportResult, name_file

# The fields of statistics that a column shows.
FIELDS: Final = {
    Figure.INVALID: ("invalidImpressions", "invalidClicks"),
    Figure.UNBOUND: ("unboundImpressions", "unboundClicks"),
}
ROWS_SHOWN_MAX: Final = 20
NONE: Final = "–"  # noqa: RUF001 - as the console has it
# Spreadsheets read a file without it in the characters of their own country.
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
USUAL: Final = (Figure.IMPRESSIONS, Figure.CLICKS, Figure.CTR, Figure.SPEND)
LABELS: Final = {
    Figure.IMPRESSIONS: "Impressions",
    Figure.CLICKS: "Clicks",
    Figure.CTR: "CTR",
    Figure.SPEND: "Spend",
    Figure.OVER_BUDGET_CLICKS: "Over budget",
    Figure.CONVERSIONS: "Conversions",
    Figure.CONVERSION_VALUE: "Conversion value",
    Figure.INVALID: "Invalid",
    Figure.UNBOUND: "Without token",
}
WITHOUT: Final = {
    Grouping.CAMPAIGN: "no campaign",
    Grouping.ADVERTISER: "the house",
    Grouping.PUBLISHER: "the house",
    Grouping.SITE: "no site",
}
CELL: Final = "padding:4px 12px 4px 0;border-bottom:1px solid #ddd;text-align:"


def write_sheet(
    definition: ReportDefinition, result: ReportResult, *, currency: str, is_of_publisher: bool
) -> bytes:
    columns = [field for one in definition.columns for field in FIELDS.get(one, (one.value,))]
    return write_csv(
        definition.group_by,
        result.rows,
        result.names,
        currency=currency,
        columns=columns,
        is_of_publisher=is_of_publisher,
    )


class ReportMail:
    """Writes the e-mail of one report."""

    def __init__(
        self, definition: ReportDefinition, result: ReportResult, *, currency: Currency, is_publisher: bool
    ) -> None:
        self._definition = definition
        self._result = result
        self._currency = currency
        self._is_publisher = is_publisher
        self._figures = definition.columns or USUAL

    def write(  # noqa: PLR0913 - what an e-mail is made of
        self, *, sender: str, to: str, others: Sequence[str], link: str, zone_note: str, mail_id: str
    ) -> Mail:
        """Write it; `link` opens the report."""
        table = self._build_table()
        notes = [*self._compare(), *self._describe_size()]
        title = f"{self._definition.name}: {name_days(self._result.days)}"
        ending = f"{zone_note} All rows are in the attached file. Open it or change when it is sent: {link}"
        text = "\n\n".join([title, _align(table), *notes, ending])
        return Mail(
            sender=sender,
            to=to,
            others=tuple(others),
            # A line break would begin another header.
            subject=" ".join(title.split()),
            text=f"{text}\n",
            html=_write_html(title, table, [*notes, zone_note], link),
            attachments=(
                Attachment(
                    name=name_file(self._result.days),
                    media_type="text/csv",
                    data=BYTE_ORDER_MARK
                    + write_sheet(
                        self._definition,
                        self._result,
                        currency=self._currency.code,
                        is_of_publisher=self._is_publisher,
                    ),
                ),
            ),
            id=mail_id,
        )

    def _build_table(self) -> list[list[str]]:
        """Return the head, the rows with most impressions (over time: the last ones) and the sum."""
        groupings = self._definition.group_by
        rows = self._choose_rows()
        head = [*(one.value.capitalize() for one in groupings), *map(self._get_label, self._figures)]
        body = [[*self._name_key(row.key), *self._show(row.counts)] for row in rows]
        empty = [""] * (len(groupings) - 1)
        return [head, *body, ["In all", *empty, *self._show(self._result.totals)]]

    def _choose_rows(self) -> list[StatsRow]:
        rows = self._result.rows
        is_over_time = not {Grouping.DAY, Grouping.HOUR, Grouping.WEEK, Grouping.MONTH}.isdisjoint(
            self._definition.group_by
        )
        if is_over_time:
            return rows[-ROWS_SHOWN_MAX:]
        return sorted(rows, key=lambda row: -row.counts.impressions)[:ROWS_SHOWN_MAX]

    def _get_label(self, figure: Figure) -> str:
        return "Revenue" if figure is Figure.SPEND and self._is_publisher else LABELS[figure]

    def _name_key(self, key: Sequence[Key]) -> list[str]:
        return [
            self._name_part(grouping, part)
            for grouping, part in zip(self._definition.group_by, key, strict=True)
        ]

    def _name_part(self, grouping: Grouping, part: Key) -> str:
        match part:
            case None | "":
                return WITHOUT.get(grouping, "unknown")
            case UUID():
                return self._result.names.get(part, str(part))
            case datetime():
                return f"{part.astimezone(self._result.zone):%Y-%m-%d %H:%M}"
            case date():
                return f"{part:%B %Y}" if grouping is Grouping.MONTH else f"{part}"
            case str():
                return part

    def _show(self, counts: Counts) -> list[str]:
        shown = {
            Figure.IMPRESSIONS: _count(counts.impressions),
            Figure.CLICKS: _count(counts.clicks),
            Figure.CTR: f"{counts.ctr:.2%}",
            Figure.SPEND: self._write_money(counts.spend),
            Figure.OVER_BUDGET_CLICKS: _count(counts.over_budget_clicks),
            Figure.CONVERSIONS: _count(counts.conversions),
            Figure.CONVERSION_VALUE: self._write_money(counts.conversion_value),
            Figure.INVALID: _count(counts.invalid_impressions + counts.invalid_clicks),
            Figure.UNBOUND: _count(counts.unbound_impressions + counts.unbound_clicks),
        }
        return [shown[figure] for figure in self._figures]

    def _write_money(self, amount: Micros | None) -> str:
        return NONE if amount is None else self._currency.write_paisa(paisa_from_micros(amount))

    def _compare(self) -> list[str]:
        """Say by how much impressions and clicks have changed."""
        days, before, now = self._result.days_before, self._result.totals_before, self._result.totals
        if days is None or before is None:
            return []
        parts = [
            f"{name}: {_change(new, old)}"
            for name, new, old in (
                ("Impressions", now.impressions, before.impressions),
                ("Clicks", now.clicks, before.clicks),
            )
        ]
        return [f"Against {name_days(days)}: {'. '.join(parts)}."]

    def _describe_size(self) -> list[str]:
        count = len(self._result.rows)
        if count == 0:
            return ["Nothing was counted in these days."]
        return [f"{ROWS_SHOWN_MAX} of {count:,} rows are shown."] if count > ROWS_SHOWN_MAX else []


def name_days(days: Days) -> str:
    first, last = days
    if first == last:
        return f"{first:%-d %B %Y}"
    return f"{first:%-d %B}{'' if first.year == last.year else f' {first.year}'} to {last:%-d %B %Y}"


def name_zone(zone: ZoneInfo) -> str:
    return f"Days are those of {zone.key}."


def _count(number: int | None) -> str:
    return NONE if number is None else f"{number:,}"


def _change(now: int, before: int) -> str:
    return f"{(now - before) / before:+.0%}" if before else f"{now:,}, there were none"


def _align(table: Sequence[Sequence[str]]) -> str:
    """Write a table in columns, for those who read plain text."""
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _write_html(title: str, table: Sequence[Sequence[str]], notes: Sequence[str], link: str) -> str:
    """Write a table that mail programs show: no style sheet, no picture, nothing from elsewhere."""
    head, *body = table
    rows = [_write_row(head, "th"), *(_write_row(row, "td") for row in body)]
    said = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        '<!doctype html><html><body style="font-family:sans-serif;color:#222">'
        f"<h2>{escape(title)}</h2>"
        f'<table style="border-collapse:collapse">{"".join(rows)}</table>{said}'
        f'<p>All rows are in the attached file. <a href="{escape(link)}">Open it or change when it is sent</a></p>'
        "</body></html>"
    )


def _write_row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(_write_cell(cell, tag, place) for place, cell in enumerate(cells))}</tr>"


def _write_cell(cell: str, tag: str, place: int) -> str:
    return f'<{tag} style="{CELL}{"right" if place else "left"}">{escape(cell)}</{tag}>'
