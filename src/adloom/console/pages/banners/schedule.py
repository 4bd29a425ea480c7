"""The schedule of a banner: dates, daily window and recurrence rule, with a calendar that follows the form."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import moment
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import card
from adloom.console.components.messages import notify_success
from adloom.console.components.schedule_calendar import banner_is_on, calendar, list_days
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload
from adloom.schedule.schedule import derive_status

PRESETS: Final = {
    "": "Every day",
    "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR": "On working days",
    "FREQ=WEEKLY;BYDAY=SA,SU": "On weekends",
    "own": "As a rule says",
}

OWN = "own"
DRAFT = "draft"


async def show_schedule(visit: PageVisit, banner: Json, reload: Reload) -> None:
    """Show the fields, and a live calendar of the next weeks beside them."""
    may_write = visit.may_write and not banner["deletedAt"]
    form = Form(banner)
    with ui.element("div").classes("al-editor"):
        with card("Schedule"), ui.element("div").classes("stack tight"):
            _add_fields(form)
            draft = ui.switch(
                "Still a draft: not shown, whatever the dates say", value=banner["scheduleStatus"] == DRAFT
            )
            ui.label("Without dates it may be shown at any time.").classes("quiet small")

            async def save() -> None:
                changes = form.patch_body()
                status = _preview_saved(banner, form, visit, is_draft=bool(draft.value))["scheduleStatus"]
                if DRAFT in {status, banner["scheduleStatus"]} and status != banner["scheduleStatus"]:
                    changes |= {"scheduleStatus": status, "updatedAt": banner["updatedAt"]}
                if changes:
                    await visit.api.patch(f"/admin/banners/{banner['id']}/schedule", changes)
                notify_success("The schedule is saved." if changes else strings.NOTHING_CHANGED)
                await reload()

            if may_write:
                form.buttons("Save", save)
        with card(strings.NEXT_WEEKS):
            _show_calendar(visit, banner, form, draft)


def _add_fields(form: Form) -> None:
    zone = form.time_zone("scheduleTimezone")
    starts = form.moment("publishAt", "From", zone=lambda: zone.value)
    ends = form.moment(
        "expiresAt",
        "Until",
        zone=lambda: zone.value,
        check=lambda value: strings.ENDS_BEFORE if starts.value and value <= starts.value else None,
    )
    starts.on_value_change(lambda: ends.validate() if ends.value else None)
    with ui.element("div").classes("grid-of tiles"):
        form.time_of_day("recurrenceWindowStart", "Every day from")
        form.time_of_day("recurrenceWindowEnd", "Every day until")
    ui.label("A window may go over midnight: 22:00 until 02:00.").classes("quiet small")
    given = form.initial("recurrenceRule") or ""
    preset = ui.select(PRESETS, label="Repeats", value=given if given in PRESETS else OWN).props(
        "outlined dense"
    )
    rule = form.text(
        "recurrenceRule",
        "Recurrence rule (RFC 5545)",
        hint="Such as FREQ=WEEKLY;BYDAY=MO,FR. Empty is every day.",
        check=checks.recurrence,
    )
    rule.bind_visibility_from(preset, "value", value=OWN)

    def choose_preset() -> None:
        if preset.value != OWN:
            rule.value = preset.value

    preset.on_value_change(choose_preset)


def _show_calendar(visit: PageVisit, banner: Json, form: Form, draft: ui.switch) -> None:
    @ui.refreshable
    def weeks() -> None:
        shown = _preview_saved(banner, form, visit, is_draft=bool(draft.value))
        zone = shown["scheduleTimezone"] or "UTC"
        calendar(list_days(banner_is_on(shown), zone=zone, now=visit.now), now=visit.now, zone=zone)

    def redraw() -> None:
        if form.is_valid():
            weeks.refresh()

    weeks()
    form.on_any_change(redraw)
    draft.on_value_change(redraw)


def _preview_saved(banner: Json, form: Form, visit: PageVisit, *, is_draft: bool) -> Json:
    """Return the banner as it would be when saved, with the status that follows from its dates."""
    values = form.values()
    has_other_dates = any(values[name] != banner[name] for name in ("publishAt", "expiresAt"))
    if is_draft:
        values["scheduleStatus"] = DRAFT
    elif has_other_dates or banner["scheduleStatus"] == DRAFT:
        status = derive_status(
            publish_at=moment(values["publishAt"]), expires_at=moment(values["expiresAt"]), now=visit.now
        )
        values["scheduleStatus"] = status.value
    return {**banner, **values}
