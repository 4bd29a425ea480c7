"""What another bid, budget, date, category or rule would bring: fields, then the forecast in words, figures and a chart."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from adloom.catalog.campaign.model import CATEGORIES_MAX
from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.categories import add_category_field
from adloom.console.components.charts.chart import Chart, Series
from adloom.console.components.format import get_shown_currency
from adloom.console.components.forms.form import Form
from adloom.console.components.forms.inputs import PAISA_PLACES
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_hint,
    add_html,
    add_notice,
    set_attributes,
)
from adloom.console.components.table import Column, build_plain_table
from adloom.console.components.targeting_sentence import describe_rule, describe_rules
from adloom.console.page import PageVisit
from adloom.console.pages.campaigns.targeting import RuleDialog, fetch_rules
from adloom.console.resource_pages import Reload
from adloom.taxonomy.iab import load_content

SLIDER_MIN: Final = -50
SLIDER_MAX: Final = 200
SLIDER_STEP: Final = 5
WHOLE_FROM: Final = 10
DASH: Final = "—"
CHART_TEXT: Final = "Impressions by hour of an average day, without and with the change"
MEASURES: Final = {
    "impressions": ("Impressions", 0),
    "clicks": ("Clicks", 0),
    "conversions": ("Conversions", 0),
    "spend": ("Spend", 2),
    "price": ("Price", 2),
}


async def show_what_if(visit: PageVisit, campaign: Json, _: Reload) -> None:
    """Show the form; nothing is simulated before somebody asks."""
    if not visit.may_write or campaign["deletedAt"]:
        add_empty_state(
            "insights",
            "Nothing to try here",
            "Who may change this campaign can try what a change would bring.",
        )
        return
    form = Form(campaign)
    with add_card(
        "What if …", note="Nothing is changed: it is simulated, from the traffic of the last 7 days"
    ):
        with add_div("grid-of two"):
            with add_div("stack tight"):
                bid = form.add_price("bidAmount", "Bid", hint=strings.BID_TYPES[campaign["bidType"]])
                _add_slider("Bid", bid, campaign["bidAmount"], places=4)
                daily = form.add_money("budgetDailyPaisa", "Daily budget", hint="Empty: no limit.")
                paisa, places = campaign["budgetDailyPaisa"], min(get_shown_currency().places, PAISA_PLACES)
                _add_slider("Daily budget", daily, None if paisa is None else paisa / 100, places=places)
            with add_div("stack tight"):
                form.add_money("budgetTotalPaisa", "Total budget", hint="Empty: no limit.")
                form.add_choice("pacingStrategy", "Pacing", strings.PACINGS, is_required=True)
                form.add_choice("bidStrategy", "Bids are", strings.BID_STRATEGIES, is_required=True)
                form.add_price("targetCpa", "What a conversion should cost", hint="Empty: not said.")
                _add_dates(form, campaign)
        _add_categories(form)
        rules = TriedRules(await fetch_rules(visit, campaign["id"]))

        async def ask() -> None:
            shown.clear()
            changes = list_changes(form.patch_body()) | rules.list_changes()
            with shown:
                if not changes:
                    add_hint("Change something first.")
                    return
                ui.spinner(size="lg")
                add_hint("Simulating; this takes up to ten seconds.")
            try:
                found = await visit.api.post(f"/admin/campaigns/{campaign['id']}/what-if", changes)
            finally:
                shown.clear()
            with shown:
                _show_forecast(found)

        with add_div("stack"):
            rules.show()
            form.add_buttons("Simulate", ask, is_loss_asked=False)
    shown = add_div("stack")


class TriedRules:
    """The targeting of a campaign as it would be; nothing is saved."""

    def __init__(self, rules: Sequence[Json]) -> None:
        self._before = [_take_rule(one) for one in rules if one["isActive"]]
        self.rules = list(self._before)

    def list_changes(self) -> Json:
        return {} if self.rules == self._before else {"targeting": self.rules}

    @ui.refreshable_method
    def show(self) -> None:
        """Show the rules as a sentence, each with buttons to change or remove it."""
        add_html(Markup('<p class="al-sentence small">{}</p>').format(describe_rules(self.rules)))
        with add_div("al-list"):
            for rule in self.rules:
                self._show_rule(rule)
        ui.button("Add a condition", icon="add", on_click=lambda: RuleDialog(None, self._save).open()).props(
            "outline"
        )

    def _show_rule(self, rule: Json) -> None:
        with add_div("row-of"):
            add_html(Markup("<span>{}</span>").format(describe_rule(rule))).classes("grow")
            ui.button("Change", on_click=lambda: RuleDialog(rule, self._save).open()).props("flat")
            ui.button("Remove", on_click=lambda: self._remove(rule)).props("flat")

    async def _save(self, rule: Json | None, body: Json) -> None:
        self.change(rule, body)
        self.show.refresh()

    def _remove(self, rule: Json) -> None:
        self.rules.remove(rule)
        self.show.refresh()

    def change(self, rule: Json | None, body: Json) -> None:
        """Add a rule, or put it in the place of another."""
        if rule is None:
            self.rules.append(_take_rule(body))
        else:
            self.rules[self.rules.index(rule)] = _take_rule(body)


def _take_rule(rule: Json) -> Json:
    return {name: rule[name] for name in ("ruleType", "operator", "value")}


def _add_dates(form: Form, campaign: Json) -> None:
    zone: Callable[[], str] = lambda: campaign["timezone"]  # noqa: E731 - fields ask for it late
    form.add_moment("startsAt", "Starts", zone=zone, hint=campaign["timezone"])
    form.add_moment("endsAt", "Ends", zone=zone, hint=campaign["timezone"])


def _add_categories(form: Form) -> None:
    for field, label in (("categories", "Pages about"), ("excludedCategories", "Not on pages about")):
        add_category_field(
            form,
            field,
            label,
            load_content(),
            hint="For contextual slots.",
            check=lambda value: None if len(value) <= CATEGORIES_MAX else f"must be at most {CATEGORIES_MAX}",
        )


def _add_slider(label: str, field: ui.number, value: float | None, *, places: int) -> None:
    """Add a slider that changes a field by per cent of what it is now."""
    if not value:
        return
    slider = ui.slider(min=SLIDER_MIN, max=SLIDER_MAX, step=SLIDER_STEP, value=0).props("label")
    set_attributes(slider, aria_label=f"{label}, change in per cent")

    def move(event: ValueChangeEventArguments[float | None]) -> None:
        field.set_value(round(value * (1 + (event.value or 0) / 100), places))

    slider.on_value_change(move)


def list_changes(body: Mapping[str, Any]) -> Json:
    """Return what is different, as the API wants it."""
    return {name: value for name, value in body.items() if name != "updatedAt"}


def _show_forecast(found: Json) -> None:
    """Show the answer: a sentence, the figures with their intervals, the hours, and what is left out."""
    if not found["isEnough"]:
        add_notice(found["sentence"], kind="warn", title="No forecast")
        _show_notes(found["notes"])
        return
    add_notice(found["sentence"], title="Forecast")
    add_html(build_plain_table(COLUMNS, build_rows(found)))
    labels, series = build_series(found["hours"])
    Chart(labels, series, classes="low", description=CHART_TEXT)
    days = found["days"]
    add_hint(
        f"{'The next day' if days == 1 else f'An average day of the next {days}'}, in {found['runs']} pairs of"
        " simulations; in brackets, where it lies with 90% probability. Hours are UTC."
    )
    _show_notes(found["notes"])


def _show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        add_hint(note)


def build_rows(found: Json) -> list[Json]:
    """Return a row a measure; one that is nothing in all of them is left out."""
    rows: list[Json] = []
    for name, (label, places) in MEASURES.items():
        days = [found[part][name] for part in ("before", "after", "difference")]
        if name == "conversions" and not any(day and day["mean"] for day in days):
            continue
        before, after, difference = (format_estimate(day, places=places) for day in days)
        unit = get_shown_currency().code if places else ""
        rows.append(
            {
                "measure": f"{label}, {unit}" if unit else label,
                "before": before,
                "after": after,
                "difference": difference,
            }
        )
    return rows


def format_estimate(one: Json | None, *, places: int) -> str | Markup:
    """Write a mean and its interval."""
    if one is None:
        return DASH
    if not places and abs(one["mean"]) < WHOLE_FROM:
        places = 1
    mean = f"{one['mean']:,.{places}f}"
    if one["low"] is None:
        return mean
    return Markup("{} <small>({} … {})</small>").format(
        mean, f"{one['low']:,.{places}f}", f"{one['high']:,.{places}f}"
    )


def build_series(hours: Sequence[Json]) -> tuple[list[str], list[Series]]:
    """Return the hours of a day, and impressions without and with the change."""
    return [f"{one['hour']:02}:00" for one in hours], [
        Series(name="Now", values=[one["before"]["mean"] for one in hours], is_dashed=True),
        Series(name="With the change", values=[one["after"]["mean"] for one in hours], has_area=True),
    ]


COLUMNS: Final = (
    Column("A day", "measure"),
    Column("Now", "before", is_number=True),
    Column("With the change", "after", is_number=True),
    Column("Difference", "difference", is_number=True),
)
