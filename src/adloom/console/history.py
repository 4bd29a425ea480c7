"""The history of an item: who changed what, and when."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import ago, full_moment, money, price
from adloom.console.components.layout import card, empty_state, html
from adloom.console.page import PageVisit
from adloom.console.words.field_labels import UNIT, label_field

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
# What the values of a field are called.
WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "status": strings.CAMPAIGN_STATUSES,
    "scheduleStatus": strings.SCHEDULE_STATUSES,
    "source": strings.SOURCES,
    "layoutType": strings.LAYOUTS,
    "delivery": strings.DELIVERIES,
    "bidType": strings.BID_TYPES,
    "pacingStrategy": strings.PACINGS,
    "state": {"requested": "Requested", "accepted": "Accepted", "refused": "Refused"},
    "operator": {"in": "One of", "not_in": "None of", "between": "Between", "is": "Is"},
    "ruleType": {
        "device": "Device",
        "country": "Country",
        "user_segment": "Segment",
        "language": "Language",
        "hour_of_day": "Hour of the day",
        "day_of_week": "Day of the week",
        "referrer_domain": "Site that the reader came from",
        "login_state": "Logged in",
        "new_visitor": "New visitor",
    },
}


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
    it = _name_part(entry)
    done: str = entry["action"]
    action = ACTIONS.get(done, done).format(it=it)
    is_new = entry["action"] == "create"
    names: Mapping[str, str] = entry["names"]
    changes = Markup("").join(
        _change(name, change, names, is_new=is_new)
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


def _name_part(entry: Json) -> str:
    """Name the part of an item that an entry is about, with what it is called."""
    part = PARTS.get(entry["noun"])
    if part is None:
        return "it"
    # The first id is the item's own.
    called = [entry["names"][one] for one in entry["nounId"].split("/")[1:] if one in entry["names"]]
    return f"{part} ({', '.join(called)})" if called else part


def _change(name: str, change: Mapping[str, Any], names: Mapping[str, str], *, is_new: bool) -> Markup:
    label = label_field(name)
    after = Markup("<ins>{}</ins>").format(format_value(name, change.get("to"), names))
    if is_new:
        return Markup("<dt>{}</dt><dd>{}</dd>").format(label, after)
    before = format_value(name, change.get("from"), names)
    return Markup("<dt>{}</dt><dd><del>{}</del> → {}</dd>").format(label, before, after)


def format_value(name: str, value: Any, names: Mapping[str, str]) -> str:  # noqa: ANN401 - whatever a field has
    """Write a value as people read it; `names` has those of ids."""
    if value is None or value in ("", [], {}):
        return "nothing"
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, list):
        return ", ".join(format_value(name, one, names) for one in value)  # pyright: ignore[reportUnknownVariableType]  of JSON
    if isinstance(value, int) and UNIT.search(name):
        return money(value) if name.endswith("Paisa") else price(value / MICROS)
    if isinstance(value, str):
        return _format_text(name, value, names)
    return _cut(msgspec.json.encode(value).decode())


def _format_text(name: str, text: str, names: Mapping[str, str]) -> str:
    if name.endswith("At"):
        return full_moment(text)
    return names.get(text) or WORDS.get(name, {}).get(text) or _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"


def _short(subject: str) -> str:
    # The beginning of a UUIDv7 is a time; its end differs most.
    return subject if len(subject) < 36 else f"…{subject[-12:]}"  # noqa: PLR2004 - the length of a UUID
