"""The pages of banners: the list, the buttons, and where a banner is shown."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.layout import card, empty_state
from adloom.console.components.status import banner_badge, campaign_badge, thumbnail
from adloom.console.components.table import Column
from adloom.console.page import PageVisit
from adloom.console.pages.banners.form import add_banner_fields
from adloom.console.pages.banners.schedule import show_schedule
from adloom.console.pages.campaigns.overview import show_results
from adloom.console.resource_pages import ON_OR_OFF, Reload, ResourcePages, Tab, switch_button
from adloom.console.shell import BUYERS

ASSIGNMENTS_MAX: Final = 100


def _title(row: Json) -> Markup:
    return Markup('<span class="al-titled">{}<span>{}</span></span>').format(
        thumbnail(row["primaryImageUrl"]), row["title"]
    )


def _link_target(row: Json) -> Markup:
    address: str = row["ctaUrl"] or ""
    shown = address.removeprefix("https://").removeprefix("http://")
    return Markup('<span class="al-cut" title="{}">{}</span>').format(address, shown)


async def _show_uses(visit: PageVisit, banner: Json, _: Reload) -> None:
    await show_results(visit, bannerId=banner["id"])
    answer = await visit.api.get("/admin/assignments", bannerId=banner["id"], pageSize=ASSIGNMENTS_MAX)
    with card("Where it is shown"):
        if not answer["items"]:
            empty_state(
                "campaign",
                "Not shown anywhere yet",
                "Open a campaign, and assign this banner to one of its placements.",
                action="To the campaigns",
                href="/console/campaigns",
            )
        with ui.element("div").classes("al-list"):
            for row in answer["items"]:
                ui.html(_use(row), sanitize=False)


def _use(row: Json) -> Markup:
    return Markup(
        '<div class="row-of apart"><div><a class="strong" href="/console/campaigns/{}?tab=banners">{}</a> {}'
        '<div class="quiet small"><a href="/console/placements/{}">{}</a> · {}</div></div>'
        '<span class="quiet small">order {} · weight {}</span></div>'
    ).format(
        row["campaignId"],
        row["campaignName"],
        campaign_badge({"status": row["campaignStatus"]}),
        row["placementId"],
        row["placementLabel"],
        strings.LAYOUTS[row["placementLayoutType"]],
        row["displayOrder"],
        row["weight"],
    )


def _add_actions(visit: PageVisit, banner: Json, reload: Reload) -> None:
    is_on = banner["isActive"]

    async def switch() -> None:
        await visit.api.patch(f"/admin/banners/{banner['id']}/{'deactivate' if is_on else 'activate'}")
        await reload()

    switch_button(
        banner["title"],
        switch,
        is_on=is_on,
        off_note=(
            "No campaign offers it any more within two seconds. "
            "Offers that are already on readers' pages still count and are charged. Its assignments stay."
        ),
        on_note="Campaigns that have it can show it within two seconds, in its schedule.",
    )


BANNERS: Final = ResourcePages(
    noun="banner",
    name_field="title",
    icon="image",
    note="One creative: an image, texts, and the page they lead to.",
    empty_note="A banner is what readers see. It needs a title and the address of an image.",
    roles=BUYERS,
    columns=[
        Column("Title", _title, sort="title"),
        Column("Status", banner_badge),
        Column("Headline", lambda row: row["headline"] or "", is_wide_only=True),
        Column("Leads to", _link_target, is_wide_only=True),
    ],
    search="Search by title, headline or description",
    filters={
        "isActive": ON_OR_OFF,
        "scheduleStatus": ("Schedule", strings.SCHEDULE_STATUSES),
        "source": ("Source", strings.SOURCES),
    },
    fields=add_banner_fields,
    defaults={"source": "internal", "priority": 0},
    defaults_from_query={"advertiserId": "advertiser"},
    badge=banner_badge,
    actions=_add_actions,
    delete_note=(
        "It is not offered any more within two seconds, and it leaves the lists. Offers that are already out "
        "still count and are charged, and reports keep it. "
        "You can undo this: it is then back in its campaigns where it was."
    ),
    tabs={
        "look": Tab("Look and text"),
        "where": Tab("Where it is shown", _show_uses),
        "schedule": Tab("Schedule", show_schedule),
    },
    tab_after_create="where",
).register()
