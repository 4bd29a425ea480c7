"""To whom a campaign is shown: conditions as parts, and the sentence that they make."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.heading import card
from adloom.console.components.notice import empty_state
from adloom.console.components.rule_dialog import RuleDialog
from adloom.console.components.targeting_sentence import part_of, sentence_of
from adloom.console.components.toast import say_good
from adloom.console.components.undo import say_undoable
from adloom.console.page import Visit

RULE_ICONS: Final = {
    "country": "public",
    "device": "devices",
    "language": "translate",
    "login_state": "how_to_reg",
    "new_visitor": "waving_hand",
    "user_segment": "group_work",
    "referrer_domain": "link",
    "hour_of_day": "schedule",
    "day_of_week": "calendar_today",
}

RULES_MAX = 100


class Targeting:
    """The conditions of a campaign; every change is one request, and the sentence follows."""

    def __init__(self, visit: Visit, campaign: Json) -> None:
        self._visit = visit
        self._campaign = campaign
        self._may_write = visit.may_write and not campaign["deletedAt"]

    async def build(self) -> None:
        """Show the sentence and the conditions."""
        await self._body()  # pyright: ignore[reportGeneralTypeIssues] - a refreshable of a coroutine is awaited

    @ui.refreshable_method
    async def _body(self) -> None:
        answer = await self._visit.api.get(
            "/admin/targeting-rules", campaignId=self._campaign["id"], pageSize=RULES_MAX, sort="createdAt"
        )
        rules = answer["items"]
        with card("Targeting"):
            ui.html(
                Markup('<p class="al-sentence">{}</p><p class="quiet small">{}</p>').format(
                    sentence_of(rules),
                    "A reader has to meet every condition. Hours and days are those of the placement's time zone.",
                ),
                sanitize=False,
            )
        with card("Conditions"):
            if not rules:
                empty_state(
                    "tune",
                    "No conditions yet",
                    "Everybody may see this campaign. Add a condition to narrow that.",
                )
            with ui.element("div").classes("al-list"):
                for rule in rules:
                    self._row(rule)
            if self._may_write:
                ui.button("Add a condition", icon="add", on_click=lambda: self._ask(None)).props("outline")

    def _row(self, rule: Json) -> None:
        with ui.element("div").classes("row-of"):
            ui.icon(RULE_ICONS[rule["ruleType"]]).props('aria-hidden="true"').classes("quiet")
            ui.html(
                Markup('<span class="quiet small">{}</span><div class="{}">{}</div>').format(
                    strings.RULE_TYPES[rule["ruleType"]], "" if rule["isActive"] else "quiet", part_of(rule)
                ),
                sanitize=False,
            ).classes("grow")
            if not self._may_write:
                return
            switch = ui.switch(
                value=rule["isActive"], on_change=lambda event: self._switch(rule, bool(event.value))
            )
            switch.props('aria-label="This condition counts"').tooltip("This condition counts")
            ui.button("Change", on_click=lambda: self._ask(rule)).props("flat")
            ui.button("Remove", on_click=lambda: self._remove(rule)).props("flat")

    def _ask(self, rule: Json | None) -> None:
        RuleDialog(rule, self._save).open()

    async def _save(self, rule: Json | None, body: Json) -> None:
        if rule is None:
            await self._visit.api.post("/admin/targeting-rules", {"campaignId": self._campaign["id"], **body})
        else:
            body = {**body, "updatedAt": rule["updatedAt"]}
            await self._visit.api.patch(f"/admin/targeting-rules/{rule['id']}", body)
        say_good("The condition is added." if rule is None else "The condition is changed.")
        await self._again()

    async def _switch(self, rule: Json, is_active: bool) -> None:  # noqa: FBT001 - as the switch says it
        await self._visit.api.patch(f"/admin/targeting-rules/{rule['id']}", {"isActive": is_active})
        await self._again()

    async def _remove(self, rule: Json) -> None:
        await self._visit.api.delete(f"/admin/targeting-rules/{rule['id']}")
        kept = {name: rule[name] for name in ("ruleType", "operator", "value", "isActive")}

        async def undo() -> None:
            await self._save(None, kept)

        say_undoable("The condition is removed.", undo)
        await self._again()

    async def _again(self) -> None:
        await self._body.refresh()
