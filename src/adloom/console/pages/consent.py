"""What a publisher decides: the inbox of campaigns that ask for placements, and the ads of a placement.

An ad that was not accepted yet is a stranger's: nothing of it is loaded until the preview is asked for, and then in the
preview's frame, which has no rights.
"""

from datetime import timedelta
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, shorten_id
from adloom.console.components.banner_preview import BannerPreview, with_neighbours
from adloom.console.components.format import format_ago, format_money, format_quantity
from adloom.console.components.forms.form import Form, open_form_dialog
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_heading,
    add_html,
    add_link_button,
    add_tab_links,
    build_badge,
)
from adloom.console.components.messages import notify_success, open_dialog
from adloom.console.components.status import build_campaign_badge
from adloom.console.components.table import Column, build_plain_table, make_number_column
from adloom.console.page import PageVisit, register_page
from adloom.console.pages.preview_link import preview_button
from adloom.console.resource_pages import Reload
from adloom.console.shell import PUBLISHER_SIDE
from adloom.core.caller import Role

INBOX: Final = "/console/requests"
ROWS_MAX: Final = 100
ADS: Final = "Ads on this placement"
NUMBERS_DAYS: Final = 30
NUMBERS_NOTE: Final = f"Numbers of the last {NUMBERS_DAYS} days"
NOTHING_SHOWN: Final = "Nothing is shown here yet"
LAYOUT: Final = "full_static"
STATES: Final = {"requested": "Waiting", "accepted": "Accepted", "refused": "Refused"}
STATE_KINDS: Final = {"requested": "info", "accepted": "good", "refused": "bad"}
NOTHING: Final = {
    "requested": ("No campaign waits for an answer", "Those that ask for a placement appear here."),
    "accepted": ("No campaign uses a placement", "Those that you accept appear here."),
    "refused": ("No campaign was refused", "Those that you refuse appear here, and can be accepted later."),
}


@register_page(INBOX, title="Requests", roles=PUBLISHER_SIDE)
async def show_requests(visit: PageVisit) -> None:
    add_heading("Requests", note="Campaigns that ask for placements. They are shown when they are accepted.")
    asked = visit.query.get("tab", "")
    state = asked if asked in STATES else "requested"
    add_tab_links(visit.path, state, STATES, label="States of requests")

    @ui.refreshable
    async def show_body() -> None:
        answer = await visit.api.get("/admin/links", state=state, pageSize=ROWS_MAX, sort="createdAt")
        if not answer["items"]:
            add_empty_state("inbox", *NOTHING[state])
            return
        for row in answer["items"]:
            await _show_request(visit, row, reload)

    async def reload() -> None:
        await show_body.refresh()

    await show_body()


async def _show_request(visit: PageVisit, row: Json, reload: Reload) -> None:
    address = f"/admin/placements/{row['placementId']}/links/{row['campaignId']}"

    async def preview() -> None:
        listed = await visit.api.get_items(
            f"/admin/placements/{row['placementId']}/banners", pageSize=ROWS_MAX
        )
        show_banners([one for one in listed if one["campaignId"] == row["campaignId"]])

    with add_card(), add_div("row-of apart"):
        add_html(_build_request(visit, row)).classes("grow")
        with add_div("row-of tight"):
            if row["banners"]:
                ui.button(f"Preview ({row['banners']})", on_click=preview).props("flat")
            _show_decision_buttons(
                visit, address, row["campaignName"], reload,
                is_accepted=row["state"] == "accepted", is_refused=row["state"] == "refused",
            )  # fmt: skip


async def show_ads(visit: PageVisit, placement: Json, reload: Reload) -> None:
    """Show every banner of a placement with its numbers; whoever decides can refuse one."""
    if placement["delivery"] == "contextual":
        await _show_contextual_ads(visit, placement)
        return
    path = f"/admin/placements/{placement['id']}"
    rows = await visit.api.get_items(f"{path}/banners", pageSize=ROWS_MAX, sort="displayOrder")
    with add_card(ADS, note=NUMBERS_NOTE):
        if not rows:
            add_empty_state("image", NOTHING_SHOWN, "No campaign has a banner on this placement.")
        with add_div("al-list"):
            for row in rows:
                _show_ad(visit, placement, row, reload)


async def _show_contextual_ads(visit: PageVisit, placement: Json) -> None:
    """Show what was seen in a contextual slot; its ads are decided about for the whole site."""
    answer = await visit.api.get(
        "/admin/stats/banners",
        **{
            "from": visit.today - timedelta(days=NUMBERS_DAYS - 1),
            "to": visit.today,
            "groupBy": "banner,campaign",
            "timeZone": visit.choose_zone(None),
            "placementId": placement["id"],
        },
    )
    rows: list[Json] = sorted(answer["items"], key=lambda row: -row["impressions"])[:ROWS_MAX]
    approvals = f"/console/sites/{placement['siteId']}?tab=approvals&state="
    with add_card(ADS, note=NUMBERS_NOTE):
        if rows:
            add_html(build_plain_table(_list_columns(visit), rows))
            with add_div("row-of"):
                add_link_button("Preview and decide", f"{approvals}approved", look="flat")
            return
        add_empty_state(
            "image",
            NOTHING_SHOWN,
            "Ads that fit the page appear here once they are approved for the site.",
            action="To the approvals",
            href=f"{approvals}pending",
        )


def _list_columns(visit: PageVisit) -> list[Column]:
    return [
        Column("Ad", lambda row: row["bannerTitle"] or shorten_id(row["bannerId"])),
        Column("Campaign", lambda row: row["campaignName"] or strings.NONE),
        make_number_column("Impressions", "impressions"),
        make_number_column("Clicks", "clicks"),
        make_number_column(_name_money(visit), "spendPaisa", format_money),
    ]


def _name_money(visit: PageVisit) -> str:
    return strings.REVENUE if visit.role is Role.PUBLISHER else strings.METRICS["spendPaisa"]


def _show_ad(visit: PageVisit, placement: Json, row: Json, reload: Reload) -> None:
    address = f"/admin/placements/{placement['id']}/links/{row['campaignId']}"
    with add_div("row-of apart"):
        add_html(_build_ad(visit, row)).classes("grow")
        with add_div("row-of tight"):
            ui.button("Preview", on_click=lambda: show_banners([row])).props("flat")
            preview_button(visit, row["bannerId"], (placement["id"], placement["label"]))
            if row["linkState"] == "requested":
                _show_decision_buttons(visit, address, row["campaignName"], reload)
            else:
                _show_decision_buttons(
                    visit, f"{address}/banners/{row['bannerId']}", row["title"], reload,
                    is_accepted=not row["isRefused"], is_refused=row["isRefused"],
                )  # fmt: skip


def show_banners(banners: list[Json]) -> None:
    """Show what visitors would see, in frames that can neither act nor be clicked."""
    with open_dialog("Preview") as dialog:
        for banner in banners:
            add_html(Markup("<strong>{}</strong> <span class='quiet small'>{}</span>").format(
                banner["title"], banner["ctaUrl"] or "leads nowhere"
            ))  # fmt: skip
            BannerPreview("desktop").show(with_neighbours(banner, LAYOUT), LAYOUT)
        ui.button("Close", on_click=dialog.close).props("flat")


def _show_decision_buttons(  # noqa: PLR0913 - what is decided where, and what it is now
    visit: PageVisit,
    address: str,
    name: str,
    reload: Reload,
    *,
    is_accepted: bool = False,
    is_refused: bool = False,
) -> None:
    if not visit.may_write:
        return

    async def accept() -> None:
        await visit.api.post(address, {"decision": "accept"})
        notify_success(f"“{name}” is accepted.")
        await reload()

    async def refuse(form: Form) -> None:
        await visit.api.post(address, {"decision": "refuse", **form.create_body()})
        notify_success(f"“{name}” is refused.")
        await reload()

    def ask() -> None:
        with open_form_dialog(f"Refuse “{name}”?", "Refuse", refuse) as form:
            form.add_text("reason", "Why", hint="The advertiser reads it.", is_long=True).props("autogrow")

    if not is_refused:
        ui.button("Refuse", on_click=ask).props("outline")
    if not is_accepted:
        ui.button("Accept", on_click=accept).props("unelevated")


def _build_request(visit: PageVisit, row: Json) -> Markup:
    return Markup(
        '<span class="strong">{}</span> {} {}<div class="small">{} · <a href="/console/placements/{}?tab=ads">{}</a></div>'
        '<div class="quiet small">{}{}</div>'
    ).format(
        row["campaignName"],
        build_campaign_badge({"status": row["campaignStatus"]}),
        build_state_badge(row["state"]),
        row["advertiserName"] or strings.THE_HOUSE,
        row["placementId"],
        row["placementLabel"],
        format_ago(row["createdAt"], now=visit.now),
        f" · {row['reason']}" if row["reason"] else "",
    )


def _build_ad(visit: PageVisit, row: Json) -> Markup:
    state = build_badge("Refused", "bad") if row["isRefused"] else build_state_badge(row["linkState"])
    return Markup(
        '<span class="strong">{}</span> {}<div class="small">{} · {}</div>'
        '<div class="quiet small">{} · {} · {}{}</div>'
    ).format(
        row["title"],
        state,
        row["advertiserName"] or strings.THE_HOUSE,
        row["campaignName"],
        format_quantity(row["impressions"], "impression"),
        format_quantity(row["clicks"], "click"),
        f"{_name_money(visit).lower()} {format_money(row['spendPaisa'])}",
        f" · {row['reason']}" if row["reason"] else "",
    )


def build_state_badge(state: str) -> Markup:
    return build_badge(STATES[state], STATE_KINDS[state])
