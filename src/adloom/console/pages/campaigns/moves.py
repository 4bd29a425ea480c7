"""The moves of a campaign between its statuses: buttons, questions, and what follows from each; and its copy."""

import functools
from collections.abc import Callable
from typing import Final

from nicegui import ui

from adloom.catalog.campaign.model import ALLOWED_MOVES, CampaignStatus
from adloom.console import strings
from adloom.console.client import ApiClient, Json
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import add_link_button, add_menu_entry, add_notice
from adloom.console.components.messages import confirm, notify_success
from adloom.console.resource_pages import Reload
from adloom.console.words.campaign_words import describe_missing, describe_missing_bid

LABELS: Final = {
    "activate": "Activate",
    "resume": "Resume",
    "schedule": "Schedule",
    "unschedule": "Back to draft",
    "pause": "Pause",
    "end": "End",
    "cancel": "Cancel it",
}
# Where the label is not the question.
QUESTIONS: Final = {
    "unschedule": "Make “{name}” a draft again?",
    "end": "End “{name}” for good?",
    "cancel": "Cancel “{name}” for good?",
}
CONSEQUENCES: Final = {
    "activate": (
        "Its banners can be shown within two seconds, between its dates and within its budgets. "
        "From then on impressions or clicks cost its bid."
    ),
    "resume": (
        "Its banners can be shown again within two seconds. It continues with the rest of today's budget; "
        "money held for offers that were not seen comes back after a few minutes."
    ),
    "schedule": (
        "It becomes active at its start. Until then nothing is shown and nothing is spent, and it can "
        "become a draft again."
    ),
    "unschedule": "It does not start automatically any more. Its dates stay, and nothing is lost.",
    "pause": (
        "No new offers within two seconds, everywhere. Offers that are already on readers' pages still count and are "
        "charged when they are seen or clicked; money held for the others comes back after a few minutes. "
        "The rest of the budget stays, and you can resume at any time."
    ),
    "end": (
        "No new offers within two seconds. Offers that are already out still count and are charged; money held for "
        "unseen offers comes back within minutes. An ended campaign never runs again, but stays in reports. "
        "To stop for a while, pause it instead."
    ),
    "cancel": (
        "It never runs again. Offers that are already out still count and are charged, money held for unseen "
        "offers comes back, and reports keep it."
    ),
}
# The status that a move leads to; the first possible move becomes the main button.
TARGETS: Final = {
    "activate": CampaignStatus.ACTIVE,
    "pause": CampaignStatus.PAUSED,
    "schedule": CampaignStatus.SCHEDULED,
    "unschedule": CampaignStatus.DRAFT,
    "end": CampaignStatus.ENDED,
    "cancel": CampaignStatus.CANCELLED,
}
RUNNING: Final = frozenset({"activate", "schedule"})
ASSIGNMENTS_MAX: Final = 100
FINAL: Final = frozenset({"end", "cancel"})


def list_moves(status: str) -> list[str]:
    allowed = ALLOWED_MOVES[CampaignStatus(status)]
    return [move for move, target in TARGETS.items() if target in allowed]


def add_move_buttons(
    api: ApiClient, campaign: Json, reload: Reload, *, on_delete: Callable[[], None]
) -> None:
    """Show the first move as a button, the others in a menu with the copy and the deletion."""
    moves = list_moves(campaign["status"])
    if moves:
        first = moves[0]
        ui.button(
            _choose_label(first, campaign), on_click=functools.partial(ask_move, api, campaign, first, reload)
        ).props("unelevated")
    with ui.button(icon="more_horiz").props('outline aria-label="More"'), ui.menu():
        for move in moves[1:]:
            add_menu_entry(
                _choose_label(move, campaign), functools.partial(ask_move, api, campaign, move, reload)
            )
        add_menu_entry("Duplicate", lambda: ask_copy(api, campaign))
        ui.separator()
        add_menu_entry("Delete", on_delete)


def ask_copy(api: ApiClient, campaign: Json) -> None:
    """Ask how the copy is called, make it, and open it."""

    async def save(form: Form) -> None:
        copy = await api.post(f"/admin/campaigns/{campaign['id']}/duplicate", form.create_body())
        ui.navigate.to(f"/console/campaigns/{copy['id']}")

    given = {"name": f"{campaign['name']} (copy)"}
    with open_form_dialog(f"Duplicate “{campaign['name']}”?", "Duplicate", save, given) as form:
        ui.label(
            "The copy is a draft with the same settings, placements, banners and targeting. It shows and spends nothing "
            "until you activate it. Publishers that had to accept the campaign have to accept the copy too."
        )
        form.add_name("name", "Name")
        form.add_moment(
            "startsAt", "Starts", zone=lambda: campaign["timezone"], hint="Empty: as the original."
        )
        form.add_moment("endsAt", "Ends", zone=lambda: campaign["timezone"], hint="Empty: as the original.")


async def ask_move(api: ApiClient, campaign: Json, move: str, reload: Reload) -> None:
    """Ask before a move; before one that lets ads be shown, say what is missing for it."""
    missing = await find_missing(api, campaign) if move in RUNNING else ""
    if move == "schedule" and not campaign["startsAt"]:
        _ask_start(api, campaign, reload, missing)
        return
    word = _choose_word(move, campaign)

    confirm(
        _write_question(word, campaign),
        CONSEQUENCES[word],
        action=LABELS[word],
        on_confirm=lambda: _move(api, campaign, move, None, reload),
        is_dangerous=move in FINAL,
        before=(lambda: _warn(campaign, missing)) if move in RUNNING else None,
    )


async def find_missing(api: ApiClient, campaign: Json) -> str:
    """Say what a campaign lacks before anything of it can be shown; empty if it lacks nothing."""
    assigned = await api.get_items("/admin/assignments", campaignId=campaign["id"], pageSize=ASSIGNMENTS_MAX)
    creatives = await api.get(f"/admin/campaigns/{campaign['id']}/creatives", pageSize=1)
    return describe_missing(assigned, creatives=creatives["totalCount"])


def _warn(campaign: Json, missing: str) -> None:
    if missing:
        with add_notice(f"{missing} Add them first, or right after it.", kind="warn"):
            add_link_button("Choose placement and banner", f"/console/campaigns/{campaign['id']}?tab=banners")
    elif no_bid := describe_missing_bid(campaign):
        with add_notice(no_bid, kind="warn"):
            add_link_button("Choose a bid", f"/console/campaigns/{campaign['id']}?tab=settings")


def _ask_start(api: ApiClient, campaign: Json, reload: Reload, missing: str) -> None:
    async def save(form: Form) -> None:
        await _move(api, campaign, "schedule", form.read_values(), reload)

    with open_form_dialog(_write_question("schedule", campaign), LABELS["schedule"], save, campaign) as form:
        _warn(campaign, missing)
        ui.label(CONSEQUENCES["schedule"])
        ui.label("It has no start date. When should it start?")
        form.add_moment("startsAt", "Starts", zone=lambda: campaign["timezone"], hint=campaign["timezone"])


async def _move(api: ApiClient, campaign: Json, move: str, body: Json | None, reload: Reload) -> None:
    moved = await api.patch(f"/admin/campaigns/{campaign['id']}/{move}", body)
    status = strings.CAMPAIGN_STATUSES[moved["status"]].lower()
    notify_success(f"“{campaign['name']}” is {status}.")
    await reload()


def _write_question(word: str, campaign: Json) -> str:
    return QUESTIONS.get(word, LABELS[word] + " “{name}”?").format(name=campaign["name"])


def _choose_word(move: str, campaign: Json) -> str:
    return "resume" if move == "activate" and campaign["status"] == CampaignStatus.PAUSED else move


def _choose_label(move: str, campaign: Json) -> str:
    return LABELS[_choose_word(move, campaign)]
