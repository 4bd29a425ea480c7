"""The history of an item: who changed what, and when."""

from collections.abc import Callable, Mapping, Set
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.categories import describe_node
from adloom.console.components.format import format_ago, format_full_moment, format_money, format_price
from adloom.console.components.layout import add_card, add_empty_state, add_html
from adloom.console.page import PageVisit
from adloom.console.words.field_labels import UNIT, label_field, name_device
from adloom.core.caller import COMMAND_LINE, SAMPLE
from adloom.resource.audit.difference import HIDDEN, VALUE_LENGTH_MAX
from adloom.taxonomy.iab import load_content, load_products

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
    "erase": "erased the data of {it}",
    "log_in": "logged in",
    "log_out": "logged out",
    "log_in_failed": "failed to log in as {it}",
    "password_changed": "changed the password of {it}",
    "password_set": "set a password of {it}",
    "role_changed": "changed the role of {it}",
}

PAGE_SIZE: Final = 20
CHANGES_MAX: Final = 100
SHOWN_CHARACTERS_MAX: Final = 120
SYSTEM: Final = "system:"
KEY: Final = "key:"
# Who is no person and no key.
AUTHORS: Final = {
    COMMAND_LINE: "The command line",
    SAMPLE: "The sample",
    "unknown": "Somebody who is not known",
}
ROLES: Final = {
    "admin": "An admin",
    "viewer": "A viewer",
    "advertiser": "An advertiser",
    "publisher": "A publisher",
    "none": "Somebody who is not logged in",
}
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
    "bidStrategy": strings.BID_STRATEGIES,
    "approvalMode": strings.APPROVAL_MODES,
    "auctionMode": strings.AUCTION_MODES,
    "auctionScoring": strings.SCORINGS,
    "floorMode": strings.FLOOR_MODES,
    "rotation": strings.ROTATIONS,
    "role": strings.ROLES,
    "state": {
        state: state.capitalize()
        for state in ("requested", "accepted", "refused", "pending", "approved", "rejected", "flagged")
    },
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

# Whose ids the values of a field are.
TAXONOMIES: Final = {
    "categories": load_content,
    "excludedCategories": load_content,
    "adProductCategory": load_products,
    "adProductBlocklist": load_products,
}


async def show_history(
    visit: PageVisit, noun: str, noun_id: str, *, find_form: Callable[[Set[str]], str] | None = None
) -> None:
    """Show the changes of an item, newest first; campaigns and sites include those of their parts.

    `find_form` returns the address of the form in which old values of some fields are put back.
    """
    about = {f"{noun}Id": noun_id} if noun in WITH_PARTS else {"noun": noun, "nounId": noun_id}
    number = 1

    async def read() -> Json:
        return await visit.api.get("/admin/audit", page=number, pageSize=PAGE_SIZE, **about)

    def show(answer: Json) -> None:
        with entries:
            for entry in answer["items"]:
                is_own = entry["noun"] == noun and entry["action"] == "update"
                form = find_form(entry["changes"].keys()) if find_form is not None and is_own else ""
                add_html(_build_entry(entry, visit.now, form), tag="li")
        more.set_visibility(answer["page"] < answer["totalPages"])

    async def show_more() -> None:
        nonlocal number
        number += 1
        show(await read())

    answer = await read()
    if not answer["items"]:
        add_empty_state(
            "history",
            "No changes yet",
            "Every change appears here: who made it, when, and the old and new values.",
        )
        return
    with add_card("Changes", note="Newest first"):
        entries = ui.element("ol").classes("al-history")
        more = ui.button("Older changes", on_click=show_more).props("flat")
        show(answer)


def _build_entry(entry: Json, now: datetime, form: str) -> Markup:
    return Markup(
        '<div class="row-of apart"><span>{} {}</span><span class="row-of"><span class="quiet small">{}</span>{}</span></div>{}'
    ).format(
        name_author(entry),
        describe_action(entry, _name_part(entry)),
        format_ago(entry["at"], now=now),
        _link_back(entry, form) if form else "",
        list_changes(entry),
    )


def _link_back(entry: Json, form: str) -> Markup:
    query = urlencode({"back": entry["at"], "request": entry["requestId"] or ""})
    return Markup('<a href="{}" title="{}">Put it back</a>').format(
        f"{form}&{query}", "Opens the form with the values from before this change."
    )


def name_author(entry: Json) -> Markup:
    """Say who made a change: by e-mail address, by the name of a key, or by whom they act for."""
    subject, role = entry["subject"], entry["role"]
    if subject.startswith(SYSTEM):
        who = "The system"
    elif entry["subjectName"]:
        who = f"Key “{entry['subjectName']}”" if subject.startswith(KEY) else entry["subjectName"]
    else:
        # An account does not know the people of others.
        of_whom = entry["names"].get(entry["accountId"] or "")
        who = AUTHORS.get(subject) or of_whom or ROLES.get(role, "Somebody")
    return Markup('<b title="{}">{}</b>').format(f"{subject} ({role})", who)


def describe_action(entry: Json, it: str) -> Markup:
    """Say what was done to something; `it` is what that is called."""
    done: str = entry["action"]
    before, named, after = ACTIONS.get(done, f"{done.replace('_', ' ')}: {{it}}").partition("{it}")
    return Markup("{}{}{}").format(before, it if named else "", after)


def list_changes(entry: Json) -> Markup:
    """List the old and new values of an entry, or nothing."""
    is_new = entry["action"] == "create"
    names: Mapping[str, str] = entry["names"]
    changes = Markup("").join(
        _change(name, change, names, is_new=is_new)
        for name, change in entry["changes"].items()
        # For a new item, leave out what the entry says anyway.
        if not (_is_empty(change.get("to")) and (is_new or _is_empty(change.get("from"))))
        and not (is_new and name in HIDDEN_FIELDS)
    )
    return Markup("<dl>{}</dl>").format(changes) if changes else Markup("")


async def read_values_before(visit: PageVisit, noun: str, item: Json) -> dict[str, Any]:
    """Return the values that an item had before the change that the address names, as its form has them."""
    try:
        since = datetime.fromisoformat(visit.query.get("back", "")).astimezone(UTC)
        before = since + timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return {}
    entries = await visit.api.get_items(
        "/admin/audit",
        noun=noun,
        nounId=item["id"],
        pageSize=CHANGES_MAX,
        **{"from": since.isoformat(), "to": before.isoformat()},
    )
    asked = visit.query.get("request") or None
    changes = [one["changes"] for one in entries if one["action"] == "update" and one["requestId"] == asked]
    return {
        name: value
        for change in changes
        for field, values in change.items()
        for name, value in [_convert_as_in_form(field, values.get("from"), item)]
        if name in item and value != item[name] and not _is_cut(value)
    }


def _convert_as_in_form(name: str, value: Any, item: Json) -> tuple[str, Any]:  # noqa: ANN401 - whatever a field has
    """Prices are recorded in micros, and shown as numbers."""
    plain = name.removesuffix("Micros")
    if name in item or plain not in item:
        return name, value
    return plain, value / MICROS if isinstance(value, int) else value


def _is_cut(value: Any) -> bool:  # noqa: ANN401 - whatever a field has
    """Return whether the record has the beginning of a value only."""
    return isinstance(value, str) and (value == HIDDEN or len(value) > VALUE_LENGTH_MAX)


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
    if _is_empty(value):
        return "nothing"
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, list):
        return ", ".join(format_value(name, one, names) for one in value)  # pyright: ignore[reportUnknownVariableType]  of JSON
    if isinstance(value, int) and UNIT.search(name):
        return format_money(value) if name.endswith("Paisa") else format_price(value / MICROS)
    if isinstance(value, str):
        return _format_text(name, value, names)
    parts: Any = value
    return _format_parts(name, parts, names) if isinstance(value, dict) else _cut(str(parts))


def _format_parts(name: str, parts: Any, names: Mapping[str, str]) -> str:  # noqa: ANN401 - an object of JSON
    if name in TAXONOMIES:
        return _format_shares(name, parts)
    shown = {part: one for part, one in parts.items() if not _is_empty(one)}
    return _cut(
        ", ".join(f"{label_field(part)}: {format_value(part, one, names)}" for part, one in shown.items())
    )


def _format_shares(name: str, shares: Mapping[str, float]) -> str:
    """Write categories with how sure they are."""
    return ", ".join(f"{_format_text(name, one, {})} {share:.0%}" for one, share in shares.items())


def _is_empty(value: Any) -> bool:  # noqa: ANN401 - whatever a field has
    return value is None or value in ("", [], {})


def _format_text(name: str, text: str, names: Mapping[str, str]) -> str:
    if name.endswith("At"):
        return format_full_moment(text)
    if name in TAXONOMIES:
        return _cut(describe_node(TAXONOMIES[name](), text))
    known = names.get(text) or WORDS.get(name, {}).get(text)
    if name == "value":
        # Of a condition; only a segment could have such a word as its name.
        known = strings.COUNTRIES.get(text) or _cut(name_device(text))
    return known or _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"
