"""The moves of a campaign: which there are, and what follows from each, said before it is made."""

import functools
from collections.abc import Awaitable, Callable
from typing import Final

from markupsafe import escape
from nicegui import ui

from adloom.catalog.campaign.lifecycle import ALLOWED_MOVES, CampaignStatus
from adloom.console.client import ApiClient, Json
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.confirm import confirm
from adloom.console.components.toast import say_good
from adloom.console.components.undo import say_undoable
from adloom.console.words import campaigns as words
from adloom.console.words import catalog as shared

# What leads to a status; the first of a campaign's moves is the one that most people look for.
TARGETS: Final = {
    "activate": CampaignStatus.ACTIVE,
    "pause": CampaignStatus.PAUSED,
    "schedule": CampaignStatus.SCHEDULED,
    "unschedule": CampaignStatus.DRAFT,
    "end": CampaignStatus.ENDED,
    "cancel": CampaignStatus.CANCELLED,
}
FINAL: Final = frozenset({"end", "cancel"})

Done = Callable[[], Awaitable[None]]


def moves_of(status: str) -> list[str]:
    """Tell the moves that a campaign of this status can make."""
    allowed = ALLOWED_MOVES[CampaignStatus(status)]
    return [move for move, target in TARGETS.items() if target in allowed]


def move_buttons(api: ApiClient, campaign: Json, on_done: Done) -> None:
    """Show the moves of a campaign: the first as a button, the others in a menu with the deletion."""
    first, *others = [*moves_of(campaign["status"]), "delete"]
    if first == "delete":
        ui.button(shared.DELETE, on_click=lambda: ask_deletion(api, campaign, on_done)).props("outline")
        return
    ui.button(_label(first, campaign), on_click=lambda: ask_move(api, campaign, first, on_done)).props(
        "unelevated"
    )
    with ui.button(icon="more_horiz").props(f'outline aria-label="{shared.MORE}"'), ui.menu():
        for move in others:
            if move == "delete":
                ui.separator()
                ui.menu_item(shared.DELETE, on_click=lambda: ask_deletion(api, campaign, on_done))
            else:
                ui.menu_item(
                    _label(move, campaign), on_click=functools.partial(ask_move, api, campaign, move, on_done)
                )


def ask_move(api: ApiClient, campaign: Json, move: str, on_done: Done) -> None:
    """Say what follows from a move, and make it when it is confirmed."""
    if move == "schedule" and not campaign["startsAt"]:
        _ask_start(api, campaign, on_done)
        return
    word = _word(move, campaign)

    async def go() -> None:
        await _move(api, campaign, move, None, on_done)

    confirm(
        words.MOVE_TITLES[word].format(name=campaign["name"]),
        words.CONSEQUENCES[word],
        action=words.MOVES[word],
        on_confirm=go,
        is_dangerous=move in FINAL,
    )


def ask_deletion(api: ApiClient, campaign: Json, on_done: Done) -> None:
    """Say what follows from deleting a campaign; it can be undone."""
    address = f"/admin/campaigns/{campaign['id']}"

    async def undo() -> None:
        await api.post(f"{address}/restore")
        say_good(shared.RESTORED.format(name=campaign["name"]))
        await on_done()

    async def go() -> None:
        await api.delete(address)
        say_undoable(shared.WAS_DELETED.format(name=campaign["name"]), undo)
        await on_done()

    confirm(
        words.DELETE_TITLE.format(name=campaign["name"]),
        words.DELETE_CONSEQUENCE,
        action=shared.DELETE,
        on_confirm=go,
        is_dangerous=True,
    )


def _ask_start(api: ApiClient, campaign: Json, on_done: Done) -> None:
    with ui.dialog(value=True) as dialog, ui.card():
        title = words.MOVE_TITLES["schedule"].format(name=campaign["name"])
        ui.html(f"<h2>{escape(title)}</h2>", sanitize=False)
        ui.label(words.CONSEQUENCES["schedule"])
        ui.label(words.START_MISSING)
        form = CatalogForm(campaign)
        form.moment("startsAt", words.STARTS_AT, zone=lambda: campaign["timezone"], hint=campaign["timezone"])

        async def save() -> None:
            await _move(api, campaign, "schedule", form.values(), on_done)
            dialog.close()

        form.actions(words.MOVES["schedule"], save, on_cancel=dialog.close)


async def _move(api: ApiClient, campaign: Json, move: str, body: Json | None, on_done: Done) -> None:
    moved = await api.patch(f"/admin/campaigns/{campaign['id']}/{move}", body)
    status = words.STATUSES[moved["status"]].lower()
    say_good(words.MOVED.format(name=campaign["name"], status=status))
    await on_done()


def _word(move: str, campaign: Json) -> str:
    return "resume" if move == "activate" and campaign["status"] == CampaignStatus.PAUSED else move


def _label(move: str, campaign: Json) -> str:
    return words.MOVES[_word(move, campaign)]
