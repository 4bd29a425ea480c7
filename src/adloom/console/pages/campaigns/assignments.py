"""Which banners a campaign shows on which placements, in which order."""

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.confirm import confirm
from adloom.console.components.heading import badge, card
from adloom.console.components.notice import empty_state, notice
from adloom.console.components.status import thumb
from adloom.console.components.toast import say_good
from adloom.console.page import Visit
from adloom.console.pages.campaigns.assignment_dialogs import ask_assignment, ask_banner, ask_placement
from adloom.console.words import campaigns as words
from adloom.console.words import catalog as shared
from adloom.console.words import placements as placement_words

ROWS_MAX = 100


class Assignments:
    """The placements of a campaign, each with its banners in the order in which slots are filled."""

    def __init__(self, visit: Visit, campaign: Json) -> None:
        self._visit = visit
        self._campaign = campaign
        self._address = f"/admin/campaigns/{campaign['id']}/placements"
        self._may_write = visit.may_write and not campaign["deletedAt"]

    async def build(self) -> None:
        """Show them."""
        await self._body()  # pyright: ignore[reportGeneralTypeIssues] - a refreshable of a coroutine is awaited

    @ui.refreshable_method
    async def _body(self) -> None:
        answer = await self._visit.api.get(
            "/admin/assignments", campaignId=self._campaign["id"], pageSize=ROWS_MAX
        )
        rows: list[Json] = answer["items"]
        if not rows:
            empty_state(
                "view_quilt",
                words.NO_PLACEMENTS,
                words.NO_PLACEMENTS_NOTE,
                action=words.ADD_PLACEMENT,
                on_action=self._add_placement if self._may_write else None,
            )
            return
        for _, group in groupby(rows, key=lambda row: row["placementId"]):
            self._placement(list(group))
        if self._may_write:
            with ui.element("div").classes("row-of"):
                ui.button(words.ADD_PLACEMENT, icon="add", on_click=self._add_placement).props("outline")

    def _placement(self, rows: Sequence[Json]) -> None:
        first = rows[0]
        shown = [row for row in rows if row["bannerId"]]
        with card():
            with ui.element("div").classes("row-of apart"):
                ui.html(_placement_head(first), sanitize=False).classes("grow")
                if self._may_write:
                    self._placement_actions(first)
            if not first["isPlacementActive"]:
                notice(words.PLACEMENT_OFF, kind="warn")
            if not shown:
                ui.label(words.NOTHING_ASSIGNED).classes("quiet")
            with ui.element("div").classes("al-list"):
                for row in shown:
                    self._banner(row, is_first=row is shown[0])
            if self._may_write:
                ui.button(words.ADD_BANNER, icon="add", on_click=lambda: self._add_banner(first)).props(
                    "flat"
                )

    def _placement_actions(self, row: Json) -> None:
        with ui.element("div").classes("row-of tight"):
            switch = ui.switch(
                value=row["isLinkActive"], on_change=lambda event: self._switch(row, bool(event.value))
            )
            switch.props(f'aria-label="{words.LINK_ACTIVE}"').tooltip(words.LINK_ACTIVE)
            ui.button(icon="delete_outline", on_click=lambda: self._ask_unlink(row)).props(
                f'flat round aria-label="{words.REMOVE_PLACEMENT}"'
            ).tooltip(words.REMOVE_PLACEMENT)

    def _banner(self, row: Json, *, is_first: bool) -> None:
        with ui.element("div").classes("row-of"):
            ui.html(_banner_row(row, is_first=is_first), sanitize=False).classes("grow")
            if self._may_write:
                ui.button(words.EDIT, on_click=lambda: self._change(row)).props("flat")
                ui.button(shared.REMOVE, on_click=lambda: self._ask_unassign(row)).props("flat")

    async def _add_placement(self) -> None:
        async def save(form: CatalogForm) -> None:
            await self._visit.api.post(self._address, form.creation())
            await self._again()

        await ask_placement(self._visit, save)

    async def _add_banner(self, row: Json) -> None:
        async def save(form: CatalogForm) -> None:
            await self._visit.api.post(f"{self._address}/{row['placementId']}/banners", form.creation())
            await self._again()

        await ask_banner(self._visit, self._campaign, save)

    def _change(self, row: Json) -> None:
        async def save(form: CatalogForm) -> None:
            changes = form.patch()
            if changes:
                await self._visit.api.patch(self._banner_address(row), changes)
            say_good(shared.SAVED if changes else shared.NOTHING_CHANGED)
            await self._again()

        ask_assignment(row, save)

    async def _switch(self, row: Json, is_active: bool) -> None:  # noqa: FBT001 - as the switch says it
        await self._visit.api.patch(f"{self._address}/{row['placementId']}", {"isActive": is_active})
        await self._again()

    def _ask_unlink(self, row: Json) -> None:
        async def go() -> None:
            await self._visit.api.delete(f"{self._address}/{row['placementId']}")
            await self._again()

        confirm(
            words.REMOVE_PLACEMENT_TITLE.format(placement=row["placementLabel"]),
            words.REMOVE_PLACEMENT_NOTE,
            action=shared.REMOVE,
            on_confirm=go,
            is_dangerous=True,
        )

    def _ask_unassign(self, row: Json) -> None:
        async def go() -> None:
            await self._visit.api.delete(self._banner_address(row))
            await self._again()

        confirm(
            words.REMOVE_BANNER_TITLE.format(banner=row["bannerTitle"], placement=row["placementLabel"]),
            words.REMOVE_BANNER_NOTE,
            action=shared.REMOVE,
            on_confirm=go,
            is_dangerous=True,
        )

    def _banner_address(self, row: Json) -> str:
        return f"{self._address}/{row['placementId']}/banners/{row['bannerId']}"

    async def _again(self) -> None:
        await self._body.refresh()


def _placement_head(row: Json) -> Markup:
    return Markup(
        '<h2><a href="/console/placements/{}">{}</a></h2><span class="quiet small">{} · {} · {}</span>'
    ).format(
        row["placementId"],
        row["placementLabel"],
        row["placementSlug"],
        placement_words.LAYOUTS[row["placementLayoutType"]],
        placement_words.DELIVERIES[row["placementDelivery"]],
    )


def _banner_row(row: Json, *, is_first: bool) -> Markup:
    marks = Markup(" ").join(_marks(row, is_first=is_first))
    place = words.WEIGHT_SHARE.format(order=row["displayOrder"], weight=row["weight"])
    return Markup(
        '<div class="row-of"><span class="al-wide-only">{}</span><div class="grow">'
        '<a class="strong" href="/console/banners/{}">{}</a> {}<div class="quiet small">{}</div></div></div>'
    ).format(thumb(row["bannerImageUrl"]), row["bannerId"], row["bannerTitle"], marks, place)


def _marks(row: Json, *, is_first: bool) -> list[Markup]:
    overrides = ("overrideHeadline", "overrideSubheadline", "overrideCtaLabel", "overrideCtaUrl")
    said = {
        words.FIRST_SHOWN: (
            "good",
            is_first and row["isActive"] and row["isBannerActive"] and not row["isFallback"],
        ),
        words.IS_FALLBACK: ("info", row["isFallback"]),
        words.IS_OVERRIDDEN: ("", any(row[name] is not None for name in overrides)),
        words.IS_OFF: ("warn", not row["isActive"] or not row["isBannerActive"]),
    }
    return [badge(text, kind) for text, (kind, is_so) in said.items() if is_so]
