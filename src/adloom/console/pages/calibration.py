"""How well clicks are predicted: what was predicted and what came, by tenths of the impressions."""

from markupsafe import Markup

from adloom.console.client import Json
from adloom.console.components import format as fmt
from adloom.console.components.layout import card, hint, html
from adloom.console.page import PageVisit


async def show_calibration(visit: PageVisit) -> None:
    """Show a table for each way of predicting; nothing before anything was learned."""
    answer = await visit.api.get("/admin/stats/calibration")
    for one in answer["items"]:
        with card(f"How well {one['scoring']} scoring predicts clicks"):
            html(str(build_table(one)))
            hint(describe(one))


def describe(one: Json) -> str:
    if one["ratio"] is None:
        return "Nobody has clicked yet."
    verdict = "That is far off." if one["isFarOff"] else "That is as good as chance allows to say."
    return (
        f"It predicted {one['ratio']:.2f} clicks for each that came, over the last "
        f"{fmt.count(round(one['impressions']))} impressions of auctions. {verdict}"
    )


def build_table(one: Json) -> Markup:
    rows = Markup("").join(
        Markup(
            '<tr><td>{}</td><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td></tr>'
        ).format(
            place,
            fmt.percent(part["predictedCtr"]),
            fmt.percent(part["ctr"]),
            fmt.count(round(part["predictedClicks"])),
            fmt.count(round(part["clicks"])),
        )
        for place, part in enumerate(one["deciles"], 1)
    )
    return Markup(
        '<table class="al-table"><thead><tr><th>Part</th><th class="num">Predicted CTR</th><th class="num">CTR</th>'
        '<th class="num">Predicted clicks</th><th class="num">Clicks</th></tr></thead><tbody>{}</tbody></table>'
    ).format(rows)
