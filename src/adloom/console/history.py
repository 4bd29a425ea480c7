"""The history of an item: who changed what, and when."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import ago, full_moment, money
from adloom.console.components.layout import card, empty_state, html
from adloom.console.page import PageVisit

PARTS: Final = {
    "link": "the use of a placement",
    "assignment": "the place of a banner",
    "targeting_rule": "a condition",
    "creative": "a banner for contextual slots",
    "page": "a page",
    "approval": "an ad",
}
WITH_PARTS: Final = frozenset({"campaign", "site"})
ACTIONS: Final = {
    "create": "added {it}",
    "update": "changed {it}",
    "delete": "deleted {it}",
    "restore": "restored {it}",
    "activate": "switched {it} on",
    "deactivate": "switched {it} off",
    "accept": "accepted {it}",
    "refuse": "refused {it}",
    "schedule": "scheduled {it}",
    "unschedule": "took {it} off the schedule",
    "pause": "paused {it}",
    "end": "ended {it}",
    "cancel": "cancelled {it}",
    "reset": "reset the budget of {it}",
    "refund": "gave money back to {it}",
    "approve": "approved {it}",
    "reject": "rejected {it}",
    "revoke": "took the approval of {it} back",
    "flag": "flagged {it}",
    "unflag": "took the flag off {it}",
}

PAGE_SIZE: Final = 20
PEOPLE_MAX: Final = 100
SHOWN_CHARACTERS_MAX: Final = 120
SYSTEM: Final = "system:"
MICROS: Final = 1_000_000
HIDDEN_FIELDS: Final = frozenset({"id", "campaignId", "createdAt", "createdBy"})
UNIT: Final = re.compile(r"(Paisa|Micros)$")
HUMP: Final = re.compile(r"([A-Z])")


async def show_history(visit: PageVisit, noun: str, noun_id: str) -> None:
    """Show the changes of an item, newest first; campaigns and sites include those of their parts."""
    about = {f"{noun}Id": noun_id} if noun in WITH_PARTS else {"noun": noun, "nounId": noun_id}
    number = 1
    people = await fetch_people(visit)

    async def read() -> Json:
        return await visit.api.get("/admin/audit", page=number, pageSize=PAGE_SIZE, **about)

    async def show_more() -> None:
        nonlocal number
        number += 1
        _show_entries(entries, await read(), more, visit.now, people)

    answer = await read()
    if not answer["items"]:
        empty_state(
            "history",
            "No changes yet",
            "Every change appears here: who made it, when, and the old and new values.",
        )
        return
    with card("Changes", note="Newest first"):
        entries = ui.element("ol").classes("al-history")
        more = ui.button("Older changes", on_click=show_more).props("flat")
        _show_entries(entries, answer, more, visit.now, people)


async def fetch_people(visit: PageVisit) -> Mapping[str, str]:
    """Return e-mail addresses by user id; only admins may read them."""
    if not visit.is_admin:
        return {}
    answer = await visit.api.get("/admin/accounts", pageSize=PEOPLE_MAX)
    return {person["id"]: person["email"] for person in answer["items"]}


def _show_entries(
    entries: ui.element, answer: Json, more: ui.button, now: datetime, people: Mapping[str, str]
) -> None:
    with entries:
        for entry in answer["items"]:
            html(_entry(entry, now, people), tag="li")
    more.set_visibility(answer["page"] < answer["totalPages"])


def _entry(entry: Json, now: datetime, people: Mapping[str, str]) -> Markup:
    subject: str = entry["subject"]
    who = "The system" if subject.startswith(SYSTEM) else people.get(subject, subject)
    it = PARTS.get(entry["noun"], "it")
    done: str = entry["action"]
    action = ACTIONS.get(done, done).format(it=it)
    is_new = entry["action"] == "create"
    changes = Markup("").join(
        _change(name, change, is_new=is_new)
        for name, change in entry["changes"].items()
        # For a new item, leave out empty values and what the entry says anyway.
        if not (is_new and (change.get("to") in (None, "", [], {}) or name in HIDDEN_FIELDS))
    )
    return Markup(
        '<div class="row-of apart"><span><b title="{}">{}</b> {}</span><span class="quiet small">{}</span></div>{}'
    ).format(
        f"{subject} ({entry['role']})",
        _short(who),
        action,
        ago(entry["at"], now=now),
        Markup("<dl>{}</dl>").format(changes) if changes else "",
    )


def _change(name: str, change: Mapping[str, Any], *, is_new: bool) -> Markup:
    label = _label(name)
    after = Markup("<ins>{}</ins>").format(_format_value(name, change.get("to")))
    if is_new:
        return Markup("<dt>{}</dt><dd>{}</dd>").format(label, after)
    before = _format_value(name, change.get("from"))
    return Markup("<dt>{}</dt><dd><del>{}</del> → {}</dd>").format(label, before, after)


def _label(name: str) -> str:
    """Write a field name as words, without its unit."""
    return HUMP.sub(r" \1", UNIT.sub("", name)).capitalize()


def _format_value(name: str, value: Any) -> str:  # noqa: ANN401 - whatever a field has, each in its way
    if value is None or value in ("", [], {}):
        return "nothing"
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, int) and name.endswith("Paisa"):
        return money(value)
    if isinstance(value, int) and name.endswith("Micros"):
        return f"{value / MICROS:,.4f}".removesuffix("00")
    if isinstance(value, str) and name.endswith("At"):
        return full_moment(value)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"


def _short(subject: str) -> str:
    # The beginning of a UUIDv7 is a time; its end differs most.
    return subject if len(subject) < 36 else f"…{subject[-12:]}"  # noqa: PLR2004 - the length of a UUID
