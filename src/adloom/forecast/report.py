"""The page of a simulated market: one HTML file without scripts or outside hosts, plots as inline SVG."""

# pure

from collections.abc import Sequence
from html import escape
from typing import Final

from adloom.core.money import MICROS_PER_UNIT
from adloom.forecast.result import (
    CLICKS,
    IMPRESSIONS,
    SPEND,
    CampaignComparison,
    DayEstimate,
    Estimate,
    MarketResult,
)

WIDTH: Final = 720
HEIGHT: Final = 220
MARGIN: Final = 48
STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#1f2328}"
    "table{border-collapse:collapse}td,th{padding:.2em .9em .2em 0;text-align:right}"
    "td:first-child,th:first-child{text-align:left}tr.last td{border-bottom:1px solid #d0d7de}"
    "small{color:#57606a}svg{max-width:100%;height:auto;border:1px solid #d0d7de;background:#fff}"
)
BEFORE: Final = "#57606a"
AFTER: Final = "#1f6feb"

Line = tuple[str, str, Sequence[Estimate]]  # Name, colour, by hour.


def build_page(result: MarketResult) -> str:
    """Return the whole page."""
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in result.sentences)
    heading = f"<p>What if:</p><ul>{sentences}</ul>" if sentences else "<p>Without any change.</p>"
    notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in result.list_notes())
    shown = [one.key for one in result.market.campaigns if one.key in result.changed_keys]
    keys = shown or [one.key for one in result.market.campaigns]
    whose = "the changed campaigns" if shown else "all campaigns"
    plots = "".join(
        f"<h3>{title}</h3>{plot(lines)}"
        for title, lines in (
            ("Impressions", _draw(result, IMPRESSIONS, keys)),
            ("Clicks", _draw(result, CLICKS, keys)),
            ("Spend", _draw(result, SPEND, keys, unit=MICROS_PER_UNIT)),
            ("Price of a thousand impressions", _draw_prices(result, keys)),
        )
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>A simulated market</title>"
        f"<style>{STYLE}</style><h1>A simulated market</h1>{heading}"
        f"<p>{result.plan.describe()}, seed {result.plan.seed};"
        f" {result.outcome.requests:,} requests. Intervals are 90 %.</p>{notes}"
        f"<h2>On an average day</h2>{_build_rows(result)}"
        f"<h2>By hour of the day (UTC), {whose}</h2>{plots}</html>\n"
    )


def _build_rows(result: MarketResult) -> str:
    rows = [_write_campaign(one.name, result.compare([one])) for one in result.choose_shown()]
    everyone = result.compare(result.market.campaigns)
    rows.append(_write_campaign(f"all {len(result.market.campaigns)} campaigns", everyone))
    head = "<tr><th>campaign<th><th>impressions<th>clicks<th>conversions<th>spend<th>price</tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _write_campaign(name: str, compared: CampaignComparison) -> str:
    parts = [("before" if compared.after else "", compared.before), ("after", compared.after)]
    parts.append(("change", compared.difference))
    known = [(label, day) for label, day in parts if day is not None]
    return "".join(
        f"<tr{' class=last' if number == len(known) - 1 else ''}><td>{escape(name) if number == 0 else ''}"
        f"<td>{label}{_write_day(day)}</tr>"
        for number, (label, day) in enumerate(known)
    )


def _write_day(day: DayEstimate) -> str:
    cells = [_write(one, 1) for one in (day.impressions, day.clicks, day.conversions)]
    return "".join([*cells, _write(day.spend, 2), "<td>-" if day.price is None else _write(day.price, 3)])


def _write(one: Estimate, places: int) -> str:
    if one.low is None or one.high is None:
        return f"<td>{one.mean:,.{places}f}"
    return f"<td>{one.mean:,.{places}f}<br><small>{one.low:,.{places}f} … {one.high:,.{places}f}</small>"


def _draw(result: MarketResult, measure: str, keys: Sequence[int], *, unit: float = 1.0) -> list[Line]:
    lines: list[Line] = []
    for name, colour, is_after in _list_arms(result):
        hours = result.estimate_hours(measure, is_after=is_after, keys=keys)
        lines.append((name, colour, [_divide(one, unit) for one in hours]))
    return lines


def _draw_prices(result: MarketResult, keys: Sequence[int]) -> list[Line]:
    return [
        (name, colour, result.estimate_prices(is_after=is_after, keys=keys))
        for name, colour, is_after in _list_arms(result)
    ]


def _list_arms(result: MarketResult) -> list[tuple[str, str, bool]]:
    arms = [("without the change" if result.outcome.after else "simulated", BEFORE, False)]
    return [*arms, ("with the change", AFTER, True)] if result.outcome.after else arms


def _divide(one: Estimate, unit: float) -> Estimate:
    if one.low is None or one.high is None:
        return Estimate(one.mean / unit)
    return Estimate(one.mean / unit, one.low / unit, one.high / unit)


def plot(lines: Sequence[Line]) -> str:
    """Draw lines over the hours of a day, with their intervals as bands."""
    top = max((one.high or one.mean for _, _, hours in lines for one in hours), default=0.0) or 1.0
    parts: list[str] = []
    for number, (name, colour, hours) in enumerate(lines):
        if any(one.low is not None for one in hours):
            ends = [(hour, one.mean if one.high is None else one.high) for hour, one in enumerate(hours)]
            ends += [
                (hour, one.mean if one.low is None else one.low)
                for hour, one in reversed(list(enumerate(hours)))
            ]
            parts.append(
                f'<polygon fill="{colour}" fill-opacity=".15" points="{_join(ends, len(hours), top)}"/>'
            )
        means = [(hour, one.mean) for hour, one in enumerate(hours)]
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{_join(means, len(hours), top)}"/>'
            f'<text x="{MARGIN + 8}" y="{16 + 15 * number}" font-size="12" fill="{colour}">{escape(name)}</text>'
        )
    ticks = "".join(
        f'<text x="{MARGIN - 6}" y="{_compute_height(value, top) + 4:.0f}" font-size="11" text-anchor="end">{value:,.4g}</text>'
        for value in (0.0, top / 2, top)
    )
    hours_below = "".join(
        f'<text x="{_place(hour, 24):.0f}" y="{HEIGHT - 8}" font-size="11" text-anchor="middle">{hour}</text>'
        for hour in range(0, 24, 4)
    )
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
        f"{ticks}{hours_below}{''.join(parts)}</svg>"
    )


def _join(points: Sequence[tuple[int, float]], count: int, top: float) -> str:
    return " ".join(f"{_place(hour, count):.1f},{_compute_height(value, top):.1f}" for hour, value in points)


def _place(hour: int, count: int) -> float:
    return MARGIN + hour * (WIDTH - 2 * MARGIN) / max(1, count - 1)


def _compute_height(value: float, top: float) -> float:
    return HEIGHT - 28 - value / top * (HEIGHT - 28 - 36)
