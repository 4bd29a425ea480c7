"""Your own account: its time zone, and the second factor of your log-in."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json, ProblemError
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import (
    add_card,
    add_copy_button,
    add_div,
    add_empty_state,
    add_heading,
    add_hint,
    add_html,
    build_badge,
)
from adloom.console.components.messages import notify_success, open_dialog
from adloom.console.page import PageVisit, register_page

OWN: Final = "/admin/accounts/me"
NOT_CHOSEN: Final = "Empty: UTC in reports, and in calendars what each campaign has."
FACTOR: Final = "/admin/accounts/me/second-factor"
WHAT_IT_IS: Final = (
    "A second factor protects your account when somebody learns your password: after it you enter a code that an"
    " app on your phone shows, such as Aegis, 1Password or Google Authenticator."
)
CODES_NOTE: Final = (
    "Keep these recovery codes in a safe place: each works once, in place of a code, when you have lost your phone."
    " They are not shown again."
)


@register_page("/console/account", title="Your account")
async def show_account(visit: PageVisit) -> None:
    add_heading("Your account", note=f"{visit.email} · {visit.role.value}")
    _show_time_zone(visit)
    try:
        state = await visit.api.get(FACTOR)
    except ProblemError as error:
        add_empty_state("lock", "There is no second factor", error.message)
        return
    with add_card("Second factor"):
        _show_state(state)
        with add_div("row-of"):
            if state["isOn"]:
                ui.button("New recovery codes", on_click=lambda: _replace_codes(visit)).props("outline")
                if not state["isRequired"]:
                    ui.button("Take it off", on_click=lambda: _remove(visit)).props("outline")
            else:
                ui.button("Set it up", on_click=lambda: _begin(visit)).props("unelevated")


def _show_time_zone(visit: PageVisit) -> None:
    form = Form({"timeZone": visit.zone})

    async def save() -> None:
        await visit.api.patch(OWN, form.read_values())
        notify_success("Your reports, charts and calendars have this time zone now.")
        ui.navigate.reload()

    with add_card("Time zone"), add_div("stack tight"):
        add_hint("Days of reports, hours of charts and calendars, and when your e-mails are sent.")
        with add_div("al-narrow"):
            form.add_time_zone("timeZone", is_required=False, hint=NOT_CHOSEN)
        form.add_buttons("Save", save)


def _show_state(state: Json) -> None:
    if not state["isOn"]:
        ui.label(WHAT_IT_IS)
        return
    add_html(
        Markup("<p>{} {}</p>").format(build_badge("on", "good"), "Your log-in asks for a code of your app.")
    )
    left = state["recoveryCodesLeft"]
    add_hint(f"{left} recovery codes are left." if left else "No recovery code is left: make new ones.")
    if state["isRequired"]:
        add_hint("Your role needs it, so you cannot take it off.")


def _begin(visit: PageVisit) -> None:
    async def save(form: Form) -> None:
        _confirm(visit, await visit.api.post(FACTOR, form.read_values()))

    with open_form_dialog("Set up a second factor", "Next", save) as form:
        form.add_password("currentPassword", "Your password", autocomplete="current-password")


def _confirm(visit: PageVisit, begun: Json) -> None:
    async def save(form: Form) -> None:
        made = await visit.api.put(FACTOR, form.read_values())
        _show_codes("Your second factor is on", made["recoveryCodes"])

    with open_form_dialog("Scan this with your app", "Turn it on", save) as form:
        # Our own picture.
        add_html(begun["svg"]).classes("al-qr-frame")
        add_hint("Or type this secret into the app:")
        with add_div("al-secret"):
            ui.label(begun["secret"]).classes("mono grow")
            add_copy_button(begun["secret"])
        _add_code_field(form)


def _replace_codes(visit: PageVisit) -> None:
    async def save(form: Form) -> None:
        made = await visit.api.post(f"{FACTOR}/recovery-codes", form.read_values())
        _show_codes("New recovery codes", made["recoveryCodes"])

    with open_form_dialog("New recovery codes?", "Make them", save) as form:
        ui.label("Those that are left stop working.")
        _add_code_field(form)


def _remove(visit: PageVisit) -> None:
    async def save(form: Form) -> None:
        await visit.api.post(f"{FACTOR}/remove", form.read_values())
        notify_success("Your second factor is off.")
        ui.navigate.reload()

    with open_form_dialog("Take the second factor off?", "Take it off", save) as form:
        ui.label("Then your password alone lets you in.")
        _add_code_field(form)


def _add_code_field(form: Form) -> None:
    field = form.add_text("code", "Code", is_required=True)
    field.props('autocomplete="one-time-code" autofocus')


def _show_codes(title: str, codes: list[str]) -> None:
    with open_dialog(title) as dialog:
        dialog.props("persistent")
        ui.label(CODES_NOTE)
        add_html(Markup('<pre class="al-codes">{}</pre>').format("\n".join(codes)))
        with add_div("al-actions"):
            add_copy_button("\n".join(codes))
            ui.button("I have them", on_click=ui.navigate.reload).props("unelevated")
