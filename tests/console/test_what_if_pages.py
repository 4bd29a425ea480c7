"""«What if» on a campaign in the console: the form, and the forecast in rows and lines."""

from markupsafe import Markup

from adloom.console.pages.campaigns.what_if import (
    TriedRules,
    build_rows,
    build_series,
    format_estimate,
    list_changes,
)
from adloom.core.caller import Role
from tests.console.visitor import Visitor
from tests.support.builders import Json
from tests.support.control import ControlPlane


def an_estimate(mean: float, half: float = 0.0) -> Json:
    return {"mean": mean, "low": mean - half, "high": mean + half}


def a_rule(kind: str, operator: str, value: object, **fields: object) -> Json:
    return {"ruleType": kind, "operator": operator, "value": value, **fields}


def a_day(mean: float) -> Json:
    return {name: an_estimate(mean, 1) for name in ("impressions", "clicks", "conversions", "spend", "price")}


def test_figures_have_their_intervals() -> None:
    assert format_estimate(an_estimate(1234.5, 100), places=0) == Markup(
        "1,234 <small>(1,134 … 1,334)</small>"
    )
    assert format_estimate(an_estimate(2.345, 1), places=0) == Markup("2.3 <small>(1.3 … 3.3)</small>")
    assert format_estimate({"mean": 2.5, "low": None, "high": None}, places=2) == "2.50"
    assert format_estimate(None, places=2) == "—"


def test_rows_and_lines_are_without_and_with_the_change() -> None:
    found = {"before": a_day(10), "after": a_day(20), "difference": a_day(10)}
    nothing = an_estimate(0)
    for day in found.values():
        day["conversions"] = nothing
    hours = [{"hour": 7, "before": an_estimate(1), "after": an_estimate(2)}]

    rows = build_rows(found)
    labels, lines = build_series(hours)

    assert [row["measure"] for row in rows] == ["Impressions", "Clicks", "Spend", "Price"]
    assert str(rows[0]["after"]).startswith("20 ")
    assert labels == ["07:00"]
    assert [list(line.values) for line in lines] == [[1], [2]]


def test_only_what_is_different_is_asked() -> None:
    assert list_changes({"bidAmount": 3, "updatedAt": "2026-11-15T12:00:00Z"}) == {"bidAmount": 3}


def test_rules_are_tried_without_being_saved() -> None:
    german, off = a_rule("country", "in", ["DE"]), a_rule("device", "in", ["mobile"], isActive=False)
    tried = TriedRules([{**german, "id": "1", "isActive": True}, off])

    assert (tried.rules, tried.list_changes()) == ([german], {})
    tried.change(tried.rules[0], a_rule("country", "in", ["FR"]))
    tried.change(None, a_rule("hour_of_day", "between", [8, 12]))
    assert tried.list_changes() == {
        "targeting": [a_rule("country", "in", ["FR"]), a_rule("hour_of_day", "between", [8, 12])]
    }
    tried.rules.clear()
    assert tried.list_changes() == {"targeting": []}


async def test_a_campaign_has_fields_and_sliders_to_try(console: ControlPlane, ann: Visitor) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        campaign = await admin.make_campaign(bidAmount=2, budgetDailyPaisa=500)
        rule = {"campaignId": campaign["id"], **a_rule("country", "in", ["DE"])}
        assert (await admin.post("/admin/targeting-rules", json=rule)).status_code == 201

    shown = (await ann.get(f"/console/campaigns/{campaign['id']}?tab=what-if")).text

    for text in (
        "What if …",
        "Nothing is changed",
        "Simulate",
        "Daily budget, change in per cent",
        "Bids are",
        "What a conversion should cost",
        "Pages about",
        "Not on pages about",
        "Germany",
    ):
        assert text in shown, text
