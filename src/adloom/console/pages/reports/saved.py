"""Saved reports: their list, and the dialogs that save, change, send and delete one."""

from collections.abc import Mapping
from datetime import UTC
from typing import Any, Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components import format as fmt
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import add_hint, add_notice, add_view_links
from adloom.console.components.messages import confirm, notify_success
from adloom.console.page import PageVisit
from adloom.console.pages.reports.question import ADDRESS, COLUMNS, FIELDS, PERIODS, ReportFilters
from adloom.core.caller import Role
from adloom.schedule.schedule import find_zone

SAVED: Final = "/admin/saved-reports"
LISTED_MAX: Final = 100
EVERY: Final = {
    "daily": "Every day",
    "weekly": "Every week",
    "monthly": "Every month, on its first day",
}
WEEKDAYS: Final = {str(number): strings.DAYS[number % 7] for number in range(1, 8)}
HOURS: Final = {str(hour): f"{hour:02}:00" for hour in range(24)}
NO_MAIL: Final = (
    "This installation sends no e-mail yet. An admin sets ADLOOM_SMTP_URL; until then nothing is sent."
)


def make_link(report_id: str) -> str:
    return f"{ADDRESS}?report={report_id}"


async def show_saved(visit: PageVisit, current: Json | None) -> None:
    """List the saved reports as links; of the one that is open, say when it is sent."""
    listed = await visit.api.get_items(SAVED, pageSize=LISTED_MAX, sort="name")
    if listed:
        views = [("New report", ADDRESS), *((one["name"], make_link(one["id"])) for one in listed)]
        add_view_links(
            views, current=make_link(current["id"]) if current else ADDRESS, label="Your saved reports"
        )
    if current is None:
        return
    if current["sendEvery"]:
        add_hint(describe_sending(current, zone=visit.choose_zone(None)))
    if current["lastFailure"]:
        add_notice(current["lastFailure"], kind="warn", title="It was not sent the last time")


def describe_sending(report: Json, *, zone: str) -> str:
    """Say when a report is sent, next and last."""
    on = f" on {WEEKDAYS[str(report['sendWeekday'])]}" if report["sendEvery"] == "weekly" else ""
    said = [
        f"Sent by e-mail: {EVERY[report['sendEvery']].lower()}{on} at {report['sendHour']:02}:00, {zone}."
    ]
    for label, field in (("Next", "nextSendAt"), ("Last", "lastSentAt")):
        at = fmt.format_moment(report[field])
        if at is not None:
            said.append(f"{label}: {at.astimezone(find_zone(zone) or UTC):%-d %B %Y, %H:%M}.")
    if not report["canBeMailed"]:
        said.append(NO_MAIL)
    return " ".join(said)


def add_buttons(visit: PageVisit, question: ReportFilters, current: Json | None, by: ui.select) -> None:
    """Add the buttons of a report that is saved, or of one that can be; `by` is the field of its dimensions."""

    def save() -> None:
        if question.split_by(by.value) == question:
            _save(visit, question)
        else:
            # The list closes with this click, and its choice opens another page: the dialog is there.
            ui.navigate.to(f"{ADDRESS}?{question.build_address(by=','.join(by.value), save='1')}")

    if current is None:
        ui.button("Save report", icon="bookmark_add", on_click=save).props("outline")
        if visit.query.get("save"):
            _save(visit, question)
        return
    ui.button("E-mail", icon="schedule_send", on_click=lambda: _schedule(visit, current)).props("outline")
    if current["canBeMailed"]:
        ui.button("Send now", icon="send", on_click=lambda: _send(visit, current)).props("outline")
    ui.button("Edit", icon="edit", on_click=lambda: _edit(visit, current)).props("outline")
    ui.button("Delete", icon="delete", on_click=lambda: _delete(visit, current)).props("outline")


def _save(visit: PageVisit, question: ReportFilters) -> None:
    async def save(form: Form) -> None:
        made = await visit.api.post(SAVED, {**question.saved, **form.read_values()})
        notify_success(f"“{made['name']}” is saved.")
        ui.navigate.to(make_link(made["id"]))

    period = None if question.period is None else question.period.value
    with open_form_dialog(
        "Save this report", "Save", save, {"period": period, "columns": question.columns}
    ) as form:
        form.add_name("name", "Name").props("autofocus")
        _add_fields(visit, form)


def _edit(visit: PageVisit, report: Json) -> None:
    async def save(form: Form) -> None:
        await _change(visit, report, form.read_values(), "The report is changed.")

    with open_form_dialog(f"Edit “{report['name']}”", "Save", save, report) as form:
        form.add_name("name", "Name")
        form.add_choices("groupBy", "By", {one: one.capitalize() for one in FIELDS})
        _add_fields(visit, form)
        form.add_flag("isCompared", "Compare with the period before")


def _add_fields(visit: PageVisit, form: Form) -> None:
    form.add_choice(
        "period",
        "Period",
        PERIODS,
        is_required=True,
        hint="Counted from the day on which the report is opened or sent.",
    )
    own = {"spend": strings.REVENUE} if visit.role is Role.PUBLISHER else {}
    form.add_choices("columns", "Columns", {**COLUMNS, **own}, hint="Empty: all of them.")


def _schedule(visit: PageVisit, report: Json) -> None:
    async def save(form: Form) -> None:
        values: dict[str, Any] = form.read_values()
        for name in ("sendWeekday", "sendHour"):
            values[name] = int(values[name])
        said = "The report is sent by e-mail." if values["sendEvery"] else "The report is not sent."
        await _change(visit, report, values, said)

    shown = {**report, **{name: str(report[name]) for name in ("sendWeekday", "sendHour")}}
    with open_form_dialog(f"Send “{report['name']}” by e-mail", "Save", save, shown) as form:
        if not report["canBeMailed"]:
            add_notice(NO_MAIL, kind="warn")
        ui.label(f"To {visit.email}, with what you may see on that day, as a short table and a CSV file.")
        form.add_choice("sendEvery", "How often", EVERY, is_clearable=True, hint="Empty: never.")
        form.add_choice("sendWeekday", "On", WEEKDAYS, is_required=True, hint="For every week.")
        form.add_choice("sendHour", "At", HOURS, is_required=True, hint=f"In {visit.choose_zone(None)}.")
        if visit.is_admin:
            form.add_texts(
                "recipients", "Also to", hint="They see your figures, and not each other's addresses."
            )


def _send(visit: PageVisit, report: Json) -> None:
    others: list[str] = report["recipients"] if visit.is_admin else []
    confirm(
        f"Send “{report['name']}” now?",
        f"It goes to {', '.join([visit.email, *others])}, with the figures of now.",
        action="Send now",
        on_confirm=lambda: visit.api.post(f"{SAVED}/{report['id']}/send"),
        success=f"“{report['name']}” is on its way.",
    )


def _delete(visit: PageVisit, report: Json) -> None:
    confirm(
        f"Delete “{report['name']}”?",
        "Its figures stay; only the saved question is gone, and no e-mail is sent any more.",
        action="Delete",
        on_confirm=lambda: visit.api.delete(f"{SAVED}/{report['id']}"),
        success=f"“{report['name']}” is deleted.",
        on_success=lambda: ui.navigate.to(ADDRESS),
        is_dangerous=True,
    )


async def _change(visit: PageVisit, report: Json, values: Mapping[str, object], success: str) -> None:
    await visit.api.patch(f"{SAVED}/{report['id']}", {**values, "updatedAt": report["updatedAt"]})
    notify_success(success)
    ui.navigate.to(make_link(report["id"]))
