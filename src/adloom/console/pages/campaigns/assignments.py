"""Which banners a campaign shows on which placements, in which order."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.forms.fields import reference_field
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import badge, card, empty_state, notice
from adloom.console.components.messages import confirm, notify_success, open_dialog
from adloom.console.components.status import thumbnail
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload
from adloom.core.actor import Role

Save = Callable[[Form], Awaitable[None]]


async def ask_placement(visit: PageVisit, on_save: Save) -> None:
    """Ask for a placement; an advertiser cannot list placements, so it enters an id."""
    with open_dialog("Add a placement") as dialog:
        form = Form()
        if visit.role is Role.ADVERTISER:
            form.text(
                "placementId",
                "Id of the placement",
                is_required=True,
                hint="You get the id from the publisher or from us.",
            )
        else:
            await reference_field(
                form,
                "placementId",
                "Placement",
                api=visit.api,
                path="/admin/placements",
                shown=lambda row: f"{row['label']} ({row['slug']})",
                is_required=True,
                sort="label",
            )
        _actions(form, dialog, "Create", on_save)


async def ask_banner(visit: PageVisit, campaign: Json, on_save: Save) -> None:
    """Ask for a banner of the campaign's advertiser."""
    with open_dialog("Add a banner") as dialog:
        form = Form({"displayOrder": 0, "weight": 100})
        await reference_field(
            form,
            "bannerId",
            "Banner",
            api=visit.api,
            path="/admin/banners",
            shown=lambda row: row["title"],
            is_required=True,
            advertiserId=campaign["advertiserId"],
        )
        _places(form)
        _actions(form, dialog, "Create", on_save)


def ask_assignment(row: Json, on_save: Save) -> None:
    with open_dialog(f"{row['bannerTitle']}: How it is shown") as dialog:
        form = Form(row)
        form.flag("isActive", "On")
        _places(form)
        form.flag("isFallback", "Fallback: fills a slot only where nothing else does")
        form.integer("fallbackPriority", "Order among fallbacks", hint="Lower comes first.")
        with (
            ui.expansion("Other texts than the banner has").classes("full"),
            ui.element("div").classes("stack tight"),
        ):
            form.text("overrideHeadline", "Headline here")
            form.text("overrideSubheadline", "Subheadline here")
            form.text("overrideCtaLabel", "Button here")
            form.url("overrideCtaUrl", "Leads here to")
            form.integer("transitionDurationMs", "Slides in within milliseconds")
        _actions(form, dialog, "Save", on_save)


def _places(form: Form) -> None:
    with ui.element("div").classes("grid-of tiles"):
        form.integer("displayOrder", "Order", hint="Lower comes first.")
        form.integer("weight", "Weight", hint="Higher comes first.")


def _actions(form: Form, dialog: ui.dialog, label: str, on_save: Save) -> None:
    async def save() -> None:
        await on_save(form)
        dialog.close()

    form.buttons(label, save, on_cancel=dialog.close)


LINK_ACTIVE: Final = "This campaign uses the placement"


ROWS_MAX = 100


async def show_assignments(visit: PageVisit, campaign: Json, reload: Reload) -> None:
    del reload
    await _Assignments(visit, campaign).show()  # pyright: ignore[reportGeneralTypeIssues] - a refreshable of a coroutine is awaited


class _Assignments:
    """The placements of a campaign, each with its banners in the order in which slots are filled."""

    def __init__(self, visit: PageVisit, campaign: Json) -> None:
        self._visit = visit
        self._campaign = campaign
        self._address = f"/admin/campaigns/{campaign['id']}/placements"
        self._may_write = visit.may_write and not campaign["deletedAt"]

    @ui.refreshable_method
    async def show(self) -> None:
        answer = await self._visit.api.get(
            "/admin/assignments", campaignId=self._campaign["id"], pageSize=ROWS_MAX
        )
        rows: list[Json] = answer["items"]
        if not rows:
            empty_state(
                "view_quilt",
                "No placements yet",
                "Choose where this campaign may appear. Then choose the banners to show there.",
                action="Add a placement",
                on_action=self._add_placement if self._may_write else None,
            )
            return
        for _, group in groupby(rows, key=lambda row: row["placementId"]):
            self._placement(list(group))
        if self._may_write:
            with ui.element("div").classes("row-of"):
                ui.button("Add a placement", icon="add", on_click=self._add_placement).props("outline")

    def _placement(self, rows: Sequence[Json]) -> None:
        first = rows[0]
        shown = [row for row in rows if row["bannerId"]]
        with card():
            with ui.element("div").classes("row-of apart"):
                ui.html(_placement_head(first), sanitize=False).classes("grow")
                if self._may_write:
                    self._placement_actions(first)
            if not first["isPlacementActive"]:
                notice("The placement is switched off.", kind="warn")
            if not shown:
                ui.label("No banner is assigned here, so this campaign shows nothing.").classes("quiet")
            with ui.element("div").classes("al-list"):
                for row in shown:
                    self._banner(row, is_first=row is shown[0])
            if self._may_write:
                ui.button("Add a banner", icon="add", on_click=lambda: self._add_banner(first)).props("flat")

    def _placement_actions(self, row: Json) -> None:
        with ui.element("div").classes("row-of tight"):
            switch = ui.switch(
                value=row["isLinkActive"], on_change=lambda event: self._switch(row, bool(event.value))
            )
            switch.props(f'aria-label="{LINK_ACTIVE}"').tooltip(LINK_ACTIVE)
            ui.button(icon="delete_outline", on_click=lambda: self._ask_unlink(row)).props(
                'flat round aria-label="Remove the placement"'
            ).tooltip("Remove the placement")

    def _banner(self, row: Json, *, is_first: bool) -> None:
        with ui.element("div").classes("row-of"):
            ui.html(_banner_row(row, is_first=is_first), sanitize=False).classes("grow")
            if self._may_write:
                ui.button("Change", on_click=lambda: self._change(row)).props("flat")
                ui.button("Remove", on_click=lambda: self._ask_unassign(row)).props("flat")

    async def _add_placement(self) -> None:
        async def save(form: Form) -> None:
            await self._visit.api.post(self._address, form.create_body())
            await self._reload()

        await ask_placement(self._visit, save)

    async def _add_banner(self, row: Json) -> None:
        async def save(form: Form) -> None:
            await self._visit.api.post(f"{self._address}/{row['placementId']}/banners", form.create_body())
            await self._reload()

        await ask_banner(self._visit, self._campaign, save)

    def _change(self, row: Json) -> None:
        async def save(form: Form) -> None:
            changes = form.patch_body()
            if changes:
                await self._visit.api.patch(self._banner_address(row), changes)
            notify_success("Saved." if changes else strings.NOTHING_CHANGED)
            await self._reload()

        ask_assignment(row, save)

    async def _switch(self, row: Json, is_active: bool) -> None:  # noqa: FBT001 - as the switch says it
        await self._visit.api.patch(f"{self._address}/{row['placementId']}", {"isActive": is_active})
        await self._reload()

    def _ask_unlink(self, row: Json) -> None:
        async def go() -> None:
            await self._visit.api.delete(f"{self._address}/{row['placementId']}")
            await self._reload()

        confirm(
            f"Remove “{row['placementLabel']}” from this campaign?",
            (
                "Its banners are removed from there too, with their order, weights and own texts. The campaign is not offered there any more within two seconds; offers that are already out still count. This cannot be undone."
            ),
            action="Remove",
            on_confirm=go,
            is_dangerous=True,
        )

    def _ask_unassign(self, row: Json) -> None:
        async def go() -> None:
            await self._visit.api.delete(self._banner_address(row))
            await self._reload()

        confirm(
            f"Remove “{row['bannerTitle']}” from “{row['placementLabel']}”?",
            (
                "It is not offered there any more within two seconds. The banner itself stays, but its order, weight and own texts on this placement are lost."
            ),
            action="Remove",
            on_confirm=go,
            is_dangerous=True,
        )

    def _banner_address(self, row: Json) -> str:
        return f"{self._address}/{row['placementId']}/banners/{row['bannerId']}"

    async def _reload(self) -> None:
        await self.show.refresh()


def _placement_head(row: Json) -> Markup:
    return Markup(
        '<h2><a href="/console/placements/{}">{}</a></h2><span class="quiet small">{} · {} · {}</span>'
    ).format(
        row["placementId"],
        row["placementLabel"],
        row["placementSlug"],
        strings.LAYOUTS[row["placementLayoutType"]],
        strings.DELIVERIES[row["placementDelivery"]],
    )


def _banner_row(row: Json, *, is_first: bool) -> Markup:
    marks = Markup(" ").join(_marks(row, is_first=is_first))
    place = strings.ORDER_AND_WEIGHT.format(order=row["displayOrder"], weight=row["weight"])
    return Markup(
        '<div class="row-of"><span class="al-wide-only">{}</span><div class="grow">'
        '<a class="strong" href="/console/banners/{}">{}</a> {}<div class="quiet small">{}</div></div></div>'
    ).format(thumbnail(row["bannerImageUrl"]), row["bannerId"], row["bannerTitle"], marks, place)


def _marks(row: Json, *, is_first: bool) -> list[Markup]:
    overrides = ("overrideHeadline", "overrideSubheadline", "overrideCtaLabel", "overrideCtaUrl")
    said = {
        "shown first": (
            "good",
            is_first and row["isActive"] and row["isBannerActive"] and not row["isFallback"],
        ),
        "fallback": ("info", row["isFallback"]),
        "own text": ("", any(row[name] is not None for name in overrides)),
        "off": ("warn", not row["isActive"] or not row["isBannerActive"]),
    }
    return [badge(text, kind) for text, (kind, is_so) in said.items() if is_so]
