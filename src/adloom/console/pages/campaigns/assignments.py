"""Which banners a campaign shows on which placements, in which order."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.catalog.assignment.resource import ACCOUNT_ORDER_MIN
from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.format import format_count, format_price
from adloom.console.components.forms.fields import (
    NEW,
    add_banner_field,
    add_new_button,
    add_reference_field,
    find_made,
)
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_html,
    add_notice,
    build_badge,
)
from adloom.console.components.messages import confirm
from adloom.console.components.status import build_thumbnail
from adloom.console.page import PageVisit
from adloom.console.pages.preview_link import preview_button
from adloom.console.resource_pages import Reload, save_changes
from adloom.console.shell import link_thing
from adloom.core.caller import Role

LINK_NOTES: Final = {
    "requested": ("Waiting for the publisher", "The campaign is shown here when it is accepted."),
    "refused": ("Refused by the publisher", "The campaign is not shown here."),
}
LINK_ACTIVE: Final = "This campaign uses the placement"
ROWS_MAX: Final = 100


async def show_assignments(visit: PageVisit, campaign: Json, _: Reload) -> None:
    assignments = _Assignments(visit, campaign)
    await assignments.show()  # pyright: ignore[reportGeneralTypeIssues] - a refreshable of a coroutine is awaited
    await assignments.go_on()


class _Assignments:
    """The placements of a campaign, each with its banners in the order in which slots are filled."""

    def __init__(self, visit: PageVisit, campaign: Json) -> None:
        self._visit = visit
        self._campaign = campaign
        self._address = f"/admin/campaigns/{campaign['id']}/placements"
        self._may_write = visit.may_write and not campaign["deletedAt"]
        self._placements: set[str] = set()

    @ui.refreshable_method
    async def show(self) -> None:
        answer = await self._visit.api.get(
            "/admin/assignments", campaignId=self._campaign["id"], pageSize=ROWS_MAX
        )
        rows: list[Json] = answer["items"]
        self._placements = {row["placementId"] for row in rows}
        if not rows:
            add_empty_state(
                "view_quilt",
                "No placements yet",
                "Choose where this campaign may appear. Then choose the banners to show there.",
                action="Add a placement",
                on_action=self._add_placement if self._may_write else None,
            )
            return
        for _, group in groupby(rows, key=lambda row: row["placementId"]):
            self._show_placement(list(group))
        if self._may_write:
            with add_div("row-of"):
                ui.button("Add a placement", icon="add", on_click=self._add_placement).props("outline")

    def _show_placement(self, rows: Sequence[Json]) -> None:
        first = rows[0]
        shown = [row for row in rows if row["bannerId"]]
        with add_card():
            with add_div("row-of apart"):
                add_html(_build_placement_head(first, self._visit.role)).classes("grow")
                if self._may_write:
                    self._show_placement_actions(first)
            if first["linkState"] != "accepted":
                title, text = LINK_NOTES[first["linkState"]]
                add_notice(first["linkReason"] or text, kind="warn", title=title)
            if not first["isPlacementActive"]:
                add_notice("The placement is switched off.", kind="warn")
            if not shown:
                ui.label("No banner is assigned here, so this campaign shows nothing.").classes("quiet")
            with add_div("al-list"):
                for row in shown:
                    self._show_banner(row, is_first=row is shown[0])
            if self._may_write:
                ui.button("Add a banner", icon="add", on_click=lambda: self._add_banner(first)).props("flat")

    def _show_placement_actions(self, row: Json) -> None:
        with add_div("row-of tight"):
            switch = ui.switch(
                value=row["isLinkActive"], on_change=lambda event: self._switch(row, bool(event.value))
            )
            switch.props(f'aria-label="{LINK_ACTIVE}"').tooltip(LINK_ACTIVE)
            ui.button(icon="delete_outline", on_click=lambda: self._ask_unlink(row)).props(
                'flat round aria-label="Remove the placement"'
            ).tooltip("Remove the placement")

    def _show_banner(self, row: Json, *, is_first: bool) -> None:
        with add_div("row-of"):
            add_html(_build_banner_row(row, is_first=is_first)).classes("grow")
            preview_button(self._visit, row["bannerId"], (row["placementId"], row["placementLabel"]))
            if self._may_write:
                ui.button("Change", on_click=lambda: self._change(row)).props("flat")
                ui.button("Remove", on_click=lambda: self._ask_unassign(row)).props("flat")

    async def go_on(self) -> None:
        """Open the dialog from which somebody went to make what is new, with that chosen."""
        new, place = find_made(self._visit.query), self._visit.query.get("add", "")
        if new is None or not self._may_write:
            return
        self._visit.query.pop(NEW)  # Else the page would ask again when it is built anew.
        ui.run_javascript("adloom.address('tab=banners')")
        if place == "placement" and self._visit.is_admin:
            await self._add_placement(await self._visit.api.get(f"/admin/placements/{new}"))
        elif place in self._placements:
            await self._add_banner({"placementId": place}, new)

    def _build_address(self, add: str) -> str:
        return f"{self._visit.path}?tab=banners&add={add}"

    async def _add_placement(self, new: Json | None = None) -> None:
        """Ask for a placement, found by its name, with what a buyer wants to know of it."""

        async def save(form: Form) -> None:
            await self._visit.api.post(self._address, form.create_body())
            await self._reload()

        values = {"placementId": new["id"]} if new else {}
        with open_form_dialog("Add a placement", "Add", save, values) as form:
            await add_reference_field(
                form,
                "placementId",
                "Placement",
                api=self._visit.api,
                path="/admin/offered-placements",
                shown=describe_offer,
                is_required=True,
                hint="Search by name, slug or site. Publishers may have to accept the campaign first.",
                current=(new["id"], f"{new['label']} ({new['slug']})") if new else None,
                sort="label",
            )
            if self._visit.is_admin:
                add_new_button("placement", back=self._build_address("placement"))

    async def _add_banner(self, row: Json, new: str | None = None) -> None:
        """Ask for a banner of the campaign's advertiser."""

        async def save(form: Form) -> None:
            await self._visit.api.post(f"{self._address}/{row['placementId']}/banners", form.create_body())
            await self._reload()

        order = ACCOUNT_ORDER_MIN if self._visit.role is Role.ADVERTISER else 0
        values = {"displayOrder": order, "weight": 100, "bannerId": new}
        with open_form_dialog("Add a banner", "Add", save, values) as form:
            await add_banner_field(form, self._visit.api, self._campaign["advertiserId"])
            add_new_button(
                "banner",
                back=self._build_address(row["placementId"]),
                advertiser=self._campaign["advertiserId"],
            )
            _add_place_fields(form)

    def _change(self, row: Json) -> None:
        async def save(form: Form) -> None:
            await save_changes(self._visit, self._write_banner_address(row), form, self._reload)

        with open_form_dialog(f"{row['bannerTitle']}: How it is shown", "Save", save, row) as form:
            form.add_flag("isActive", "On")
            _add_place_fields(form)
            form.add_flag("isFallback", "Fallback: fills a slot only where nothing else does")
            form.add_integer("fallbackPriority", "Order among fallbacks", hint="Lower comes first.")
            with (
                ui.expansion("Other texts than the banner has").classes("full"),
                add_div("stack tight"),
            ):
                form.add_text("overrideHeadline", "Headline here")
                form.add_text("overrideSubheadline", "Subheadline here")
                form.add_text("overrideCtaLabel", "Button here")
                form.add_url("overrideCtaUrl", "Leads here to")
                form.add_integer("transitionDurationMs", "Slides in within milliseconds")

    async def _switch(self, row: Json, is_active: bool) -> None:  # noqa: FBT001 - as the switch says it
        await self._visit.api.patch(f"{self._address}/{row['placementId']}", {"isActive": is_active})
        await self._reload()

    def _ask_unlink(self, row: Json) -> None:
        self._ask_remove(
            f"{self._address}/{row['placementId']}",
            f"Remove “{row['placementLabel']}” from this campaign?",
            "Its banners are removed from there too, with their order, weights and own texts. The campaign is not offered "
            "there any more within two seconds; offers that are already out still count. This cannot be undone.",
        )

    def _ask_unassign(self, row: Json) -> None:
        self._ask_remove(
            self._write_banner_address(row),
            f"Remove “{row['bannerTitle']}” from “{row['placementLabel']}”?",
            "It is not offered there any more within two seconds. The banner itself stays, but its order, weight and "
            "own texts on this placement are lost.",
        )

    def _ask_remove(self, address: str, question: str, consequence: str) -> None:
        confirm(
            question,
            consequence,
            action="Remove",
            on_confirm=lambda: self._visit.api.delete(address),
            on_success=self._reload,
            is_dangerous=True,
        )

    def _write_banner_address(self, row: Json) -> str:
        return f"{self._address}/{row['placementId']}/banners/{row['bannerId']}"

    async def _reload(self) -> None:
        await self.show.refresh()


def describe_offer(row: Json) -> str:
    """Write a placement as a buyer sees it: name, site, size, price, and how often it is asked for."""
    size = ""
    if row["recommendedWidth"] and row["recommendedHeight"]:
        size = f"{row['recommendedWidth']}×{row['recommendedHeight']}"
    parts = (
        f"{row['label']} ({row['slug']})",
        row["siteDomain"] or "",
        size or row["recommendedAspectRatio"] or strings.LAYOUTS[row["layoutType"]],
        f"from {format_price(row['floorCpm'])} CPM" if row["floorCpm"] else "",
        _describe_requests(row["requestsPerDay"]),
        "" if row["isOpen"] else "on request",
    )
    return " · ".join(part for part in parts if part)


def _describe_requests(a_day: float | None) -> str:
    if a_day is None:
        return ""  # Valkey is away.
    return f"about {format_count(a_day)} requests a day" if a_day >= 1 else "asked for less than once a day"


def _add_place_fields(form: Form) -> None:
    with add_div("grid-of tiles"):
        form.add_integer("displayOrder", "Order", hint="Lower comes first.")
        form.add_integer(
            "weight", "Weight", hint="Higher comes first, or more often where banners take turns."
        )


def _build_placement_head(row: Json, role: Role) -> Markup:
    return Markup('<h2>{}</h2><span class="quiet small">{} · {} · {}</span>').format(
        link_thing("placement", row["placementId"], row["placementLabel"], role),
        row["placementSlug"],
        strings.LAYOUTS[row["placementLayoutType"]],
        strings.DELIVERIES[row["placementDelivery"]],
    )


def _build_banner_row(row: Json, *, is_first: bool) -> Markup:
    marks = Markup(" ").join(_build_marks(row, is_first=is_first))
    place = strings.ORDER_AND_WEIGHT.format(order=row["displayOrder"], weight=row["weight"])
    return Markup(
        '<div class="row-of"><span class="al-wide-only">{}</span><div class="grow">'
        '<a class="strong" href="/console/banners/{}">{}</a> {}<div class="quiet small">{}</div></div></div>'
    ).format(build_thumbnail(row["bannerImageUrl"]), row["bannerId"], row["bannerTitle"], marks, place)


def _build_marks(row: Json, *, is_first: bool) -> list[Markup]:
    overrides = ("overrideHeadline", "overrideSubheadline", "overrideCtaLabel", "overrideCtaUrl")
    said = {
        "shown first": (
            "good",
            is_first and row["isActive"] and row["isBannerActive"] and not row["isFallback"],
        ),
        "fallback": ("info", row["isFallback"]),
        "own text": ("", any(row[name] is not None for name in overrides)),
        "refused": ("bad", row["isRefused"]),
        "off": ("warn", not row["isActive"] or not row["isBannerActive"]),
    }
    return [build_badge(text, kind) for text, (kind, is_so) in said.items() if is_so]
