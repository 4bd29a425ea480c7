"""Who changed what, over all things: by noun, by person and by day."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final

from markupsafe import Markup

from adloom.console.client import Json
from adloom.console.components.format import format_ago
from adloom.console.components.forms.values import convert_to_utc
from adloom.console.components.layout import add_heading
from adloom.console.components.table import Column, DataTable
from adloom.console.history import PARTS, describe_action, list_changes, name_author
from adloom.console.page import PageVisit, register_page
from adloom.console.shell import STAFF
from adloom.core.clock import parse_day

ADDRESS: Final = "/console/history"
NOUNS: Final = {
    "campaign": "Campaigns",
    "link": "Uses of placements",
    "assignment": "Banners on placements",
    "targeting_rule": "Targeting",
    "creative": "Banners for contextual slots",
    "banner": "Banners",
    "frequency_cap": "Frequency caps",
    "asset": "Uploads",
    "placement": "Placements",
    "site": "Sites",
    "page": "Pages of sites",
    "approval": "Approvals",
    "advertiser": "Advertisers",
    "publisher": "Publishers",
    "budget": "Budgets",
    "user": "Accounts",
    "api_key": "API keys",
    "access_token": "Tokens of the command line",
    "saved_report": "Saved reports",
    "ad_account": "Ad accounts elsewhere",
    "reader": "Visitors",
}
# What one of them is called, unless it is the noun itself.
WORDS: Final = {
    "asset": "an uploaded file",
    "user": "the account",
    "access_token": "a token of the command line",
    "api_key": "the API key",
    "ad_account": "the ad account",
    "adset": "the ad set",
    "page": "a page of",
    "reader": "a visitor",
}
# Nouns with a page, and those whose first id is of such a noun.
PAGES: Final = {
    "campaign": "campaigns",
    "banner": "banners",
    "placement": "placements",
    "site": "sites",
    "advertiser": "advertisers",
    "publisher": "publishers",
    "link": "campaigns",
    "assignment": "campaigns",
    "creative": "campaigns",
    "budget": "campaigns",
    "page": "sites",
    "approval": "sites",
}
NAME_FIELDS: Final = ("name", "title", "label", "domain", "email")


@register_page(ADDRESS, title="History", roles=STAFF)
async def show_everything(visit: PageVisit) -> None:
    add_heading("History", note="Who changed what, and when. Newest first.")

    async def read(query: Mapping[str, str]) -> Json:
        days = bound_days(query.get("from"), query.get("to"), visit.zone)
        others = {name: value for name, value in query.items() if name not in {"from", "to"}}
        return await visit.api.get("/admin/audit", **others, **days)

    table = DataTable(
        visit.query,
        [
            Column("When", lambda entry: format_ago(entry["at"], now=visit.now)),
            Column("Who", name_author, is_wide_only=True),
            Column("What", _show_action),
            Column("Old and new values", _show_changes, is_wide_only=True),
        ],
        read,
        empty=("history", "No changes yet", "Every change appears here."),
        caption="Changes",
    )
    table.filter("noun", "What", NOUNS)
    if visit.is_admin:
        await table.filter_by("subject", "Who", api=visit.api, path="/admin/accounts", key="email")
    table.filter_by_day("from", "From")
    table.filter_by_day("to", "To")
    await table.show()


def bound_days(first: str | None, last: str | None, zone: str | None) -> dict[str, str]:
    """Return from when and until when, for days of a zone; what is no day bounds nothing."""
    bounds = {"from": _parse(first), "to": _parse(last)}
    if bounds["to"] is not None:
        bounds["to"] += timedelta(days=1)
    moments = {name: convert_to_utc(f"{day}T00:00", zone) for name, day in bounds.items() if day is not None}
    return {name: moment for name, moment in moments.items() if moment is not None}


def _parse(text: str | None) -> date | None:
    try:
        day = parse_day(text or "")
    except ValueError:
        return None
    # Beyond, the day after it, or its start elsewhere, would leave the calendar.
    return day if 1 < day.year < 9999 else None  # noqa: PLR2004 - the first and last years


def name_thing(entry: Json) -> Markup:
    """Name what an entry is about, with a link to its page."""
    noun: str = entry["noun"]
    ids: list[str] = entry["nounId"].split("/")
    called = [entry["names"][one] for one in ids if one in entry["names"]] or _find_old_name(entry)
    word = WORDS.get(noun) or PARTS.get(noun) or f"the {noun.replace('_', ' ')}"
    text = f"{word} “{', '.join(called)}”" if called else word
    if noun not in PAGES or ids[0] not in entry["names"]:
        return Markup("{}").format(text)
    return Markup('{} <a href="/console/{}/{}">“{}”</a>').format(word, PAGES[noun], ids[0], ", ".join(called))


def _find_old_name(entry: Json) -> list[str]:
    """Return the name that a thing had which is not there any more."""
    found = (entry["changes"].get(field, {}) for field in NAME_FIELDS)
    return [name for change in found if isinstance(name := change.get("from") or change.get("to"), str)][:1]


def _show_action(entry: Json) -> Markup:
    """Say what was done; on a phone also by whom, as there is no room for a column."""
    done = describe_action(entry, name_thing(entry))
    return Markup('<div class="wrap"><span class="al-phone-only">{} </span>{}</div>').format(
        name_author(entry), done
    )


def _show_changes(entry: Json) -> Markup:
    changes = list_changes(entry)
    if not changes:
        return Markup("")
    number = len(entry["changes"])
    return Markup('<details class="al-history"><summary>{} {}</summary>{}</details>').format(
        number, "field" if number == 1 else "fields", changes
    )
