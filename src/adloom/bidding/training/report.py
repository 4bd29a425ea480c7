"""The report of a training run: one HTML page without scripts, plots as inline SVG."""

from collections.abc import Mapping, Sequence
from html import escape

from adloom.bidding.weights import WeightsCard

WIDTH, HEIGHT, MARGIN = 720, 240, 40
COLOURS = ("#1f6feb", "#d1242f", "#1a7f37", "#9a6700", "#8250df", "#57606a")
STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:760px;margin:2em auto;padding:0 1em;color:#1f2328}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em .2em 0;text-align:left}"
    "svg{background:#fff;border:1px solid #d0d7de}"
)


def build_report(
    card: WeightsCard, curves: Mapping[str, Sequence[float]], days: Mapping[str, Sequence[float]]
) -> str:
    """Return the page: `curves` by training step, `days` are multipliers by window of some seat-days."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{score:.4f}</td></tr>" for name, score in sorted(card.scores.items())
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Training of {escape(card.kind)}</title>"
        f"<style>{STYLE}</style><h1>Training of {escape(card.kind)}</h1>"
        f"<p>{escape(card.trained_on)}, data <code>{escape(card.data)}</code>, seed {card.seed}, {card.steps} steps."
        f" Trained on days {_list_days(card.train_days)}; measured on days {_list_days(card.held_out_days)},"
        " which no step has seen.</p>"
        f"<p>Weights <code>{card.sha256}</code></p>"
        f"<h2>On the held-out days</h2><table><tr><th>what</th><th>share</th></tr>{rows}</table>"
        f"<h2>By training step</h2>{plot(curves, 'step')}"
        f"<h2>Multipliers by window</h2>{plot(days, 'window')}</html>\n"
    )


def plot(curves: Mapping[str, Sequence[float]], unit: str) -> str:
    """Draw lines over their index."""
    values = [value for curve in curves.values() for value in curve]
    if not values:
        return "<p>Nothing to draw.</p>"
    low, high = min(values), max(values)
    high = high if high > low else low + 1.0
    longest = max(len(curve) for curve in curves.values())
    lines: list[str] = []
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        step = (WIDTH - 2 * MARGIN) / max(1, len(curve) - 1)
        points = " ".join(
            f"{MARGIN + index * step:.1f},{_compute_height(value, low, high):.1f}"
            for index, value in enumerate(curve)
        )
        lines.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>'
            f'<text x="{MARGIN + 6}" y="{MARGIN + 14 * number}" font-size="11" fill="{colour}">{escape(name)}</text>'
        )
    ticks = "".join(
        f'<text x="4" y="{_compute_height(value, low, high) + 4:.0f}" font-size="11">{value:.2f}</text>'
        for value in (low, (low + high) / 2, high)
    )
    foot = f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 8}" font-size="11" text-anchor="end">{longest} {escape(unit)}s</text>'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">{ticks}{"".join(lines)}{foot}</svg>'


def _compute_height(value: float, low: float, high: float) -> float:
    return HEIGHT - MARGIN - (value - low) / (high - low) * (HEIGHT - 2 * MARGIN)


def _list_days(days: Sequence[int]) -> str:
    return f"{min(days)} to {max(days)} ({len(days)})" if days else "none"
