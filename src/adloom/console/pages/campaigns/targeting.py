"""The targeting rules of a campaign: as parts, as one sentence, and the dialog that edits a rule."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from markupsafe import Markup, escape
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, ProblemError
from adloom.console.components.forms.inputs import TextsSelect
from adloom.console.components.layout import add_card, add_div, add_empty_state, add_html, add_notice
from adloom.console.components.messages import notify_success, notify_undoable, open_dialog
from adloom.console.components.targeting_sentence import RULE_WORDS, describe_rule, describe_rules
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload
from adloom.core.errors import AdloomError
from adloom.targeting.rules import OPERATORS, RuleType, parse_rule

OPERATOR_LABELS: Final = {"in": "is one of", "not_in": "is none of", "is": "is", "between": "is between"}

HOURS: Final = {hour: f"{hour:02}:00" for hour in range(24)}
# Weeks begin on Monday here; in the API 0 is Sunday.
DAYS: Final = {day % 7: strings.DAYS[day % 7] for day in range(1, 8)}
CHOICES: Final[Mapping[str, Mapping[Any, str]]] = {
    "country": {code: f"{name} ({code})" for code, name in strings.COUNTRIES.items()},
    "language": {code: f"{name} ({code})" for code, name in strings.LANGUAGES.items()},
    "device": {device: name.capitalize() for device, name in strings.DEVICES.items()},
    "hour_of_day": HOURS,
    "day_of_week": DAYS,
}
RULES_MAX: Final = 100
Save = Callable[[Json | None, Json], Awaitable[None]]


async def fetch_rules(visit: PageVisit, campaign_id: str) -> list[Json]:
    """Return the targeting rules of a campaign, the oldest first."""
    return await visit.api.get_items(
        "/admin/targeting-rules", campaignId=campaign_id, pageSize=RULES_MAX, sort="createdAt"
    )


class RuleDialog:
    """The dialog for one rule; `on_save` gets the old rule and the new one in the API's form."""

    def __init__(self, rule: Json | None, on_save: Save, *, knows_countries: bool = True) -> None:
        self._rule = rule
        self._on_save = on_save
        self._add_typed: Callable[[], None] = lambda: None
        self._knows_countries = knows_countries
        self._kind: str = rule["ruleType"] if rule else "country"
        self._operator: str = rule["operator"] if rule else "in"
        self._value: Any = rule["value"] if rule else []

    def open(self) -> None:
        title = "Add a condition" if self._rule is None else "Change the condition"
        with open_dialog(title) as self._dialog:
            kinds = ui.select(
                {kind: words.label for kind, words in RULE_WORDS.items()},
                label="What is it about?",
                value=self._kind,
                on_change=self._on_kind,
            )
            kinds.props("outlined dense").classes("full")
            self._parts = add_div("stack")
            self._meaning = add_html("").props('role="status"')
            with add_div("al-actions"):
                ui.button("Cancel", on_click=self._dialog.close).props("flat")
                self._button = ui.button("Save", on_click=self._save).props("unelevated")
        self._build()

    def _on_kind(self, event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        self._kind = event.value
        self._operator = OPERATORS[RuleType(self._kind)][0].value
        self._value = self._find_first_value()
        self._build()

    def _on_operator(self, event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        was_pair = self._operator == "between"
        self._operator = event.value
        if was_pair or self._operator == "between":
            self._value = self._find_first_value()
            self._build()
        else:
            self._show_meaning()

    def _find_first_value(self) -> Any:  # noqa: ANN401 - of the shape that the operator takes
        return {"is": True, "between": [9, 17]}.get(self._operator, [])

    def _build(self) -> None:
        self._parts.clear()
        self._add_typed = lambda: None
        operators = OPERATORS[RuleType(self._kind)]
        with self._parts:
            if self._kind == "country" and not self._knows_countries:
                add_notice(strings.NO_COUNTRIES, kind="warn")
            if len(operators) > 1:
                ui.toggle(
                    {one.value: OPERATOR_LABELS[one] for one in operators},
                    value=self._operator,
                    on_change=self._on_operator,
                ).props('aria-label="Comparison"')
            match self._operator:
                case "is":
                    self._flag()
                case "between":
                    self._show_pair()
                case _:
                    self._list()
        self._show_meaning()

    def _flag(self) -> None:
        no, yes = RULE_WORDS[self._kind].values
        labels = {True: yes, False: no}
        ui.radio(labels, value=bool(self._value), on_change=lambda event: self._set(event.value)).props(
            "inline"
        )

    def _show_pair(self) -> None:
        def change_hour(place: int, hour: int) -> None:
            pair = list(self._value)
            pair[place] = hour
            self._set(pair)

        with add_div("grid-of two"):
            for place, label in enumerate(("From the hour", "To the hour (it is included)")):
                ui.select(
                    HOURS,
                    label=label,
                    value=self._value[place],
                    on_change=lambda event, place=place: change_hour(place, event.value),
                ).props("outlined dense")

    def _list(self) -> None:
        label, choices = str(RULE_WORDS[self._kind].values), CHOICES.get(self._kind)
        if choices is None:
            field: ui.select = TextsSelect(label, list(self._value))
            self._add_typed = field.add_typed
        else:
            options = {**choices, **{one: str(one) for one in self._value if one not in choices}}
            field = ui.select(options, label=label, value=list(self._value), multiple=True, with_input=True)
        field.on_value_change(lambda event: self._set(event.value or []))
        field.props("outlined dense use-chips").classes("full")

    def _set(self, value: Any) -> None:  # noqa: ANN401 - as the field has it
        self._value = value
        self._show_meaning()

    @property
    def _body(self) -> Json:
        return {"ruleType": self._kind, "operator": self._operator, "value": self._value}

    def _show_meaning(self) -> None:
        """Show what the rule means or what is wrong with it, by the same code as the API."""
        try:
            rule = parse_rule(self._kind, self._operator, self._value)
        except AdloomError as error:
            # No error while nothing is chosen.
            shown = "" if self._value == [] else f'<p class="bad">{escape(error.detail)}</p>'
            self._meaning.content = shown
            self._button.disable()
            return
        normal = {**self._body, "value": rule.json_value}
        sentence = strings.SHOWN_TO.format(parts=describe_rule(normal))
        unknown = (
            "Readers for whom this is unknown see the campaign."
            if self._operator == "not_in"
            else "Readers for whom this is unknown do not see the campaign."
        )
        may_be_unknown = self._kind in {"country", "device", "language", "user_segment", "referrer_domain"}
        self._meaning.content = (
            f'<p class="al-sentence small">{escape(sentence)}</p>'
            f'<p class="quiet small">{escape(unknown) if may_be_unknown else ""}</p>'
        )
        self._button.enable()

    async def _save(self) -> None:
        self._add_typed()
        self._button.disable()
        try:
            await self._on_save(self._rule, self._body)
        except ProblemError as error:
            self._meaning.content = f'<p class="bad">{escape(error.message)}</p>'
            self._button.enable()
            return
        self._dialog.close()


async def show_targeting(visit: PageVisit, campaign: Json, _: Reload) -> None:
    await _Targeting(visit, campaign).show()  # pyright: ignore[reportGeneralTypeIssues] - a refreshable of a coroutine is awaited


class _Targeting:
    """The rules of a campaign; each change is one request, and the sentence follows."""

    def __init__(self, visit: PageVisit, campaign: Json) -> None:
        self._visit = visit
        self._campaign = campaign
        self._may_write = visit.may_write and not campaign["deletedAt"]

    @ui.refreshable_method
    async def show(self) -> None:
        rules = await fetch_rules(self._visit, self._campaign["id"])
        with add_card("Targeting"):
            add_html(
                Markup('<p class="al-sentence">{}</p><p class="quiet small">{}</p>').format(
                    describe_rules(rules),
                    "A reader has to meet every condition. Hours and days are those of the placement's time zone.",
                ),
            )
        with add_card("Conditions"):
            if not rules:
                add_empty_state(
                    "tune",
                    "No conditions yet",
                    "Everyone can see this campaign. Add a condition to narrow it.",
                )
            with add_div("al-list"):
                for rule in rules:
                    self._show_row(rule)
            if self._may_write:
                ui.button("Add a condition", icon="add", on_click=lambda: self._ask(None)).props("outline")

    def _show_row(self, rule: Json) -> None:
        words = RULE_WORDS[rule["ruleType"]]
        with add_div("row-of"):
            ui.icon(words.icon).props('aria-hidden="true"').classes("quiet")
            add_html(
                Markup('<span class="quiet small">{}</span><div class="{}">{}</div>').format(
                    words.label,
                    "" if rule["isActive"] else "quiet",
                    describe_rule(rule),
                ),
            ).classes("grow")
            if not self._may_write:
                return
            switch = ui.switch(
                value=rule["isActive"], on_change=lambda event: self._switch(rule, bool(event.value))
            )
            switch.props('aria-label="This condition counts"').tooltip("This condition counts")
            ui.button("Change", on_click=lambda: self._ask(rule)).props("flat")
            ui.button("Remove", on_click=lambda: self._remove(rule)).props("flat")

    async def _ask(self, rule: Json | None) -> None:
        known = (await self._visit.api.get("/admin/attention"))["knowsCountries"]
        RuleDialog(rule, self._save, knows_countries=known).open()

    async def _save(self, rule: Json | None, body: Json) -> None:
        if rule is None:
            await self._visit.api.post("/admin/targeting-rules", {"campaignId": self._campaign["id"], **body})
        else:
            body = {**body, "updatedAt": rule["updatedAt"]}
            await self._visit.api.patch(f"/admin/targeting-rules/{rule['id']}", body)
        notify_success("The condition is added." if rule is None else "The condition is changed.")
        await self._reload()

    async def _switch(self, rule: Json, is_active: bool) -> None:  # noqa: FBT001 - as the switch says it
        await self._visit.api.patch(f"/admin/targeting-rules/{rule['id']}", {"isActive": is_active})
        await self._reload()

    async def _remove(self, rule: Json) -> None:
        await self._visit.api.delete(f"/admin/targeting-rules/{rule['id']}")
        kept = {name: rule[name] for name in ("ruleType", "operator", "value", "isActive")}

        async def undo() -> None:
            await self._save(None, kept)

        notify_undoable("The condition is removed.", undo)
        await self._reload()

    async def _reload(self) -> None:
        await self.show.refresh()
