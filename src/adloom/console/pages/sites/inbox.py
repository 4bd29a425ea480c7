"""The ads that bid for a site: looked at one by one or many at once, by mouse or by keys.

Only the ad that is looked at is loaded, in the preview's frame, which has no rights.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, ProblemError
from adloom.console.components.banner_preview import BannerPreview, with_neighbours
from adloom.console.components.categories import describe_node
from adloom.console.components.format import format_ago, format_count, format_quantity
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_facts,
    add_hint,
    add_html,
    build_badge,
    set_attributes,
)
from adloom.console.components.messages import notify_success, notify_undoable
from adloom.console.components.status import format_size
from adloom.console.components.table import CLICK_HANDLER
from adloom.console.event_source import Event, follow_site
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload
from adloom.taxonomy.iab import load_products

STATES: Final = {"pending": "Waiting", "approved": "Approved", "rejected": "Rejected", "flagged": "Flagged"}
KINDS: Final = {"pending": "info", "approved": "good", "rejected": "bad", "flagged": "warn"}
NOTHING: Final = {
    "pending": (
        "No ad waits for you",
        "An ad appears here by itself when it bids for a page of this site.",
    ),
    "approved": ("No ad is approved", "An approved ad is shown on the pages that it fits."),
    "rejected": ("No ad is rejected", "A rejected ad is not shown until you approve it."),
    "flagged": ("No ad is flagged", "Flag an ad to take it off the site while you find out more about it."),
}
# By key: a decision, its button, what it does, and in which states it is possible.
DECISIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "a": ("approve", "Approve", "approved"),
    "r": ("reject", "Reject", "rejected"),
    "v": ("revoke", "Take back", "waiting again"),
    "f": ("flag", "Flag", "flagged"),
    "u": ("unflag", "Unflag", "waiting again"),
}
POSSIBLE: Final = {"pending": "arf", "approved": "vrf", "rejected": "af", "flagged": "aur"}
# Those that take an ad away: the advertiser reads why.
WITH_REASON: Final = frozenset({"reject", "revoke", "flag"})
CONSEQUENCES: Final = {
    "reject": "It is not shown on this site until you approve it.",
    "revoke": "It leaves this site within a second, and waits for your decision again.",
    "flag": "It leaves this site within a second, and is listed as flagged.",
}
NEXT, PREVIOUS, SELECT, ALL = "j", "k", "x", "*"
REASON_LENGTH_MAX: Final = 500
ROWS_MAX: Final = 100
LAYOUT: Final = "inline_card"
VERSION: Final = ("bannerId", "bannerUpdatedAt")
CURRENT: Final = '[data-act="open"][aria-current]'
APPROVED_BY_MODE: Final = {
    "automatic": "by the site's settings",
    "trusted": "as you approved this advertiser before",
}


class ApprovalInbox:
    """The ads of a site in one state."""

    def __init__(self, visit: PageVisit, site_id: str, state: str, *, on_change: Reload) -> None:
        self._visit = visit
        self._path = f"/admin/sites/{site_id}/approvals"
        self._site_id = site_id
        self._state = state
        self._on_change = on_change
        self._rows: list[Json] = []
        self._total = 0
        self._current = ""
        self._checked: set[str] = set()
        self._is_busy = False
        self._keys = POSSIBLE[state] if visit.may_write else ""

    async def show(self) -> None:
        with set_attributes(add_div("stack"), data_keys=" ".join((NEXT, PREVIOUS, SELECT, ALL, *self._keys))):
            with add_div("row-of apart"):
                add_html(_describe_keys(self._keys)).classes("al-keys quiet small al-wide-only")
                self._said = add_hint().props('role="status"')
            self._nothing = add_div("")
            with add_div("al-editor") as self._body:
                with add_card(classes="flush"):
                    self._bar = add_div("row-of apart al-inbox-bar")
                    self._list = add_html("", tag="ul").classes("al-inbox")
                    self._list.on("click", self._on_click, js_handler=CLICK_HANDLER)
                with add_div("al-sticky"), add_card("The ad as it will look"), add_div("stack"):
                    self._preview = BannerPreview("desktop")
                    self._buttons = add_div("row-of tight")
                    self._facts = add_div("")
        ui.on("adloom_key", self._on_key)
        await self._reload()
        follow_site(self._visit, self._site_id, self._on_events)

    async def _reload(self) -> None:
        """Read the ads again; what is selected and looked at stays, where it is still there."""
        place = self._find_place()
        answer = await self._visit.api.get(
            self._path, state=self._state, pageSize=ROWS_MAX, sort="firstSeenAt"
        )
        before = self._find_current()
        self._rows, self._total = answer["items"], answer["totalCount"]
        known = [row["bannerId"] for row in self._rows]
        self._checked &= set(known)
        if self._current not in known:
            self._current = known[min(place, len(known) - 1)] if known else ""
        after = self._find_current()
        if before is None or after is None or any(before[name] != after[name] for name in VERSION):
            self._show_current()
        self._show_list()

    def _find_current(self) -> Json | None:
        return next((row for row in self._rows if row["bannerId"] == self._current), None)

    def _find_place(self) -> int:
        return next((at for at, row in enumerate(self._rows) if row["bannerId"] == self._current), 0)

    def _show_list(self) -> None:
        self._body.set_visibility(bool(self._rows))
        self._nothing.clear()
        self._bar.clear()
        if not self._rows:
            with self._nothing:
                add_empty_state("inbox", *NOTHING[self._state])
            return
        self._list.content = Markup("").join(
            _build_row(
                row, is_current=row["bannerId"] == self._current, is_checked=row["bannerId"] in self._checked
            )
            for row in self._rows
        )
        with self._bar:
            self._show_bar()
        ui.run_javascript("adloom.restoreFocus()")

    def _show_bar(self) -> None:
        are_all = len(self._checked) == len(self._rows)
        ui.checkbox("Select all", value=are_all, on_change=self._check_all)
        more = f"the oldest {ROWS_MAX} of " if self._total > len(self._rows) else ""
        add_hint(f"{len(self._checked)} selected" if self._checked else f"{more}{format_count(self._total)}")
        if self._checked:
            with add_div("row-of tight"):
                self._add_buttons(len(self._checked))

    def _add_buttons(self, number: int = 0) -> None:
        for key in self._keys:
            decision, label, _ = DECISIONS[key]
            text = f"{label} {number}" if number else label
            button = ui.button(text, on_click=functools.partial(self._ask, decision))
            button.props["unelevated" if decision == "approve" else "outline"] = True

    def _show_current(self) -> None:
        """Show the ad that is looked at, and what there is to know about it."""
        row = self._find_current()
        self._buttons.clear()
        self._facts.clear()
        if row is None:
            return
        layout = row["layoutType"] or LAYOUT
        self._preview.show(with_neighbours(row, layout), layout)
        with self._buttons:
            self._add_buttons()
        with self._facts:
            add_facts(_list_facts(self._visit, row))

    async def _on_click(self, event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        name, banner_id = event.args
        if name == "check":
            self._checked ^= {banner_id}
        else:
            self._open(banner_id)
        self._show_list()

    def _open(self, banner_id: str) -> None:
        if banner_id != self._current:
            self._current = banner_id
            self._show_current()

    def _check_all(self) -> None:
        every = {row["bannerId"] for row in self._rows}
        self._checked = set() if self._checked == every else every
        self._show_list()

    async def _on_key(self, event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        key: str = event.args
        if not self._rows:
            return
        if key in {NEXT, PREVIOUS}:
            place = self._find_place() + (1 if key == NEXT else -1)
            self._open(self._rows[min(max(place, 0), len(self._rows) - 1)]["bannerId"])
            self._show_list()
        elif key == SELECT:
            self._checked ^= {self._current}
            self._show_list()
        elif key == ALL:
            self._check_all()
        elif key in self._keys:
            await self._ask(DECISIONS[key][0])
            return
        self._focus_current()

    def _focus_current(self) -> None:
        ui.run_javascript(f"adloom.refocus('{CURRENT}'); adloom.reveal('{CURRENT}')")

    async def _ask(self, decision: str) -> None:
        """Decide about what is selected, else about the ad that is looked at; ask why, where one is taken away."""
        chosen = sorted(self._checked) or [self._current]
        if decision not in WITH_REASON:
            await self._decide(decision, chosen, None)
            return

        async def save(form: Form) -> None:
            await self._decide(decision, chosen, form.read_values()["reason"])

        label = next(label for name, label, _ in DECISIONS.values() if name == decision)
        what = f"{len(chosen)} ads" if len(chosen) > 1 else f"“{self._name(chosen[0])}”"
        with open_form_dialog(f"{label} {what}?", label, save) as form:
            ui.label(CONSEQUENCES[decision])
            field = form.add_text(
                "reason", "Why", hint="The advertiser reads it. You may leave it empty.", is_long=True
            )
            field.props(f"autogrow autofocus maxlength={REASON_LENGTH_MAX}")

    def _name(self, banner_id: str) -> str:
        return next((row["title"] for row in self._rows if row["bannerId"] == banner_id), "")

    async def _decide(self, decision: str, chosen: Sequence[str], reason: str | None) -> None:
        if self._is_busy:  # A key that is pressed twice must not hit an ad that nobody has looked at.
            return
        self._is_busy = True
        try:
            body: Json = {"decision": decision, "bannerIds": chosen, "reason": reason}
            if decision == "approve":
                body["updatedAt"] = {
                    row["bannerId"]: row["bannerUpdatedAt"] for row in self._rows if row["bannerId"] in chosen
                }
            try:
                changed = (await self._visit.api.post(self._path, body))["changed"]
            except ProblemError:
                await self._reload()  # An ad that has changed is shown as it is now.
                raise
            self._checked.clear()
            self._said.set_text("")
            await self._reload()
            await self._on_change()
        finally:
            self._is_busy = False
        done = next(done for name, _, done in DECISIONS.values() if name == decision)
        said = f"{format_count(changed)} {'ad is' if changed == 1 else 'ads are'} {done}."
        if decision == "approve":
            notify_undoable(said, lambda: self._undo(chosen))
        else:
            notify_success(said)
        self._focus_current()

    async def _undo(self, chosen: Sequence[str]) -> None:
        await self._decide("revoke", chosen, None)

    async def _on_events(self, events: Sequence[Event]) -> None:
        names = {name for name, _ in events}
        if not names & {*STATES, "revoked", "listening"}:
            return
        before = {row["bannerId"] for row in self._rows}
        await self._reload()
        await self._on_change()
        new = [row for row in self._rows if row["bannerId"] not in before]
        if new and "listening" not in names:
            self._said.set_text(f"New: {', '.join(row['title'] for row in new[:3])}")


def build_state_badge(state: str) -> Markup:
    return build_badge(STATES[state], KINDS[state])


def _build_row(row: Json, *, is_current: bool, is_checked: bool) -> Markup:
    return Markup(
        '<li{}><input type="checkbox" data-act="check" data-value="{}" aria-label="Select {}"{}>'
        '<button type="button" data-act="open" data-value="{}"{}><span class="strong cut">{}</span>'
        '<span class="quiet small cut">{}</span></button><span class="quiet small num">{}</span></li>'
    ).format(
        Markup(' class="is-current"') if is_current else "",
        row["bannerId"],
        row["title"],
        Markup(" checked") if is_checked else "",
        row["bannerId"],
        Markup(' aria-current="true"') if is_current else "",
        row["title"],
        f"{row['advertiserName'] or strings.THE_HOUSE} · {row['landingDomain'] or 'leads nowhere'}",
        _describe_places(row),
    )


def _describe_places(row: Json) -> str:
    return format_quantity(row["pages"], "page") if row["pages"] else "on no page now"


def _list_facts(visit: PageVisit, row: Json) -> list[tuple[str, str | Markup]]:
    product = row["adProductCategory"]
    where = (
        f"{_describe_places(row)}, {format_quantity(row['slots'], 'slot')}" if row["pages"] else "no page now"
    )
    return [
        ("Title", row["title"]),
        ("Campaign", row["campaignName"]),
        ("Advertiser", row["advertiserName"] or strings.THE_HOUSE),
        ("Leads to", row["landingDomain"] or "nowhere"),
        ("Advertises", describe_node(load_products(), product) if product else "not said"),
        ("Size", format_size(row)),
        ("Wants", where),
        ("Seen first", format_ago(row["firstSeenAt"], now=visit.now)),
        *_describe_decision(visit, row),
    ]


def _describe_decision(visit: PageVisit, row: Json) -> list[tuple[str, str | Markup]]:
    if not row["decidedAt"]:
        return [("State", build_state_badge(row["state"]))]
    who = APPROVED_BY_MODE.get(row["decidedBy"] or "") or row["decidedByName"] or ""
    said = Markup("{} {} {}").format(
        build_state_badge(row["state"]), format_ago(row["decidedAt"], now=visit.now), who
    )
    return [("State", said), *([("Reason", row["reason"])] if row["reason"] else [])]


def _describe_keys(keys: str) -> Markup:
    named = {NEXT: "next", PREVIOUS: "previous", SELECT: "select", ALL: "select all"}
    named |= {key: DECISIONS[key][1].lower() for key in keys}
    return Markup("Keys: ") + Markup(" ").join(
        Markup("<kbd>{}</kbd> {}").format(key, what) for key, what in named.items()
    )
