"""The pages of placements: list, form and overview."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.catalog.placement import OVER_THE_PAGE
from adloom.console import strings
from adloom.console.client import Json, ProblemError
from adloom.console.components.banner_preview import BannerPreview, draw_layout
from adloom.console.components.format import format_price
from adloom.console.components.forms import checks
from adloom.console.components.forms.checks import suggest_slug
from adloom.console.components.forms.fields import add_owner_field, add_reference_field, fetch_name
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_facts,
    add_hint,
    add_html,
    add_link_button,
    add_notice,
    add_snippet,
    build_badge,
)
from adloom.console.components.status import build_campaign_badge, build_switch_badge, build_thumbnail
from adloom.console.components.table import Column, make_number_column
from adloom.console.page import PageVisit
from adloom.console.pages.campaigns.overview import apply_overrides, show_comparison, show_results
from adloom.console.pages.consent import show_ads
from adloom.console.resource_pages import ON_OR_OFF, Reload, ResourcePages, Tab, switch_button
from adloom.console.shell import PUBLISHER_SIDE
from adloom.core.caller import Role

FLOOR_CPM: Final = "Lowest price of a thousand impressions"
ROWS_MAX: Final = 100
BANNERS_SHOWN_MAX: Final = 4
ROTATION_HINT: Final = "Which is shown where several of one order fit."
DELIVERY_NOTES: Final = {
    "direct": "Assigned banners, in their order.",
    "auction": "Campaigns bid for each request.",
    "contextual": "What fits the page.",
}
NO_SPACE: Final = (
    "It keeps no space free yet: the page moves when the ad comes. "
    "Fill in width and height, or the aspect ratio, in the settings, and copy the lines again."
)
RATIO_LENGTH_MAX: Final = 20
PAGE_LENGTH_MAX: Final = 100
TYPE_LENGTH_MAX: Final = 50


async def show_overview(visit: PageVisit, placement: Json, _: Reload) -> None:
    # A publisher has the ads in a tab of their own, without the pages of campaigns and banners.
    rows = [] if visit.role is Role.PUBLISHER else await _fetch_assignments(visit, placement)
    with add_div("grid-of side"):
        with add_div("stack"):
            await _show_tag(visit, placement)
            if visit.role is not Role.PUBLISHER and placement["delivery"] != "contextual":
                _show_banners(rows)
            await show_results(visit, placementId=placement["id"])
            await show_comparison(visit, f"placements/{placement['id']}")
            await _show_facts(visit, placement)
        if rows:
            await _show_preview(visit, placement, rows)


async def _show_tag(visit: PageVisit, placement: Json) -> None:
    tag = await visit.api.get(f"/admin/placements/{placement['id']}/tag")
    with add_card("Put it on a page"):
        add_hint("Put the script into the page once, and the second line where the placement should be.")
        add_snippet(tag["html"])
        if "style=" not in tag["html"] and placement["layoutType"] not in OVER_THE_PAGE:
            add_hint(NO_SPACE)
        with ui.expansion("For pages without scripts").classes("full"):
            add_snippet(tag["frameHtml"])
            ui.link("Try it", tag["pageUrl"], new_tab=True)
        if placement["siteId"] is not None:
            await _show_tag_check(visit, placement)


async def _show_tag_check(visit: PageVisit, placement: Json) -> None:
    """Let somebody ask whether the tag is on a page of the site."""
    site = await visit.api.get(f"/admin/sites/{placement['siteId']}")
    found = add_div("full")

    async def check() -> None:
        found.clear()
        with found:
            try:
                answer = await visit.api.post(
                    f"/admin/placements/{placement['id']}/tag-check", {"url": field.value}
                )
            except ProblemError as error:
                add_notice(error.message, kind="bad")
                return
            add_notice(answer["message"], kind="good" if answer["isThere"] else "warn", title=answer["url"])

    with add_div("row-of"):
        field = ui.input("Is my tag there?", value=f"https://{site['domain']}/")
        field.props('outlined dense data-field="tagPage"').classes("grow").on("keydown.enter", check)
        ui.button("Look", icon="search", on_click=check).props("outline")


async def _show_facts(visit: PageVisit, placement: Json) -> None:
    site = await fetch_name(visit.api, "/admin/sites", placement["siteId"])
    width, height = placement["recommendedWidth"], placement["recommendedHeight"]
    with add_card("At a glance"):
        add_facts(
            [
                ("Slug", placement["slug"]),
                ("Layout", draw_layout(placement["layoutType"])),
                ("Filled by", strings.DELIVERIES[placement["delivery"]]),
                ("Slots", str(placement["maxBanners"])),
                *(
                    [("Rotation", strings.ROTATIONS[placement["rotation"]])]
                    if placement["delivery"] == "direct"
                    else []
                ),
                ("Time zone", placement["timezone"]),
                *([("Site", site)] if site else []),
                *([("What fits", f"{width} x {height}")] if width and height else []),
                (FLOOR_CPM, _describe_floor(placement)),
                ("Advertisers", "use it at once" if placement["isOpen"] else "ask first"),
                *([("Notes", placement["notes"])] if placement["notes"] else []),
            ]
        )


def _describe_floor(placement: Json) -> str:
    floor = format_price(placement["floorCpm"])
    return f"{floor}, or more if its site says so" if placement["delivery"] == "contextual" else floor


async def _fetch_assignments(visit: PageVisit, placement: Json) -> list[Json]:
    rows = await visit.api.get_items("/admin/assignments", placementId=placement["id"], pageSize=ROWS_MAX)
    return [row for row in rows if row["bannerId"]]


def _show_banners(rows: list[Json]) -> None:
    with add_card(
        "What is shown here", note="In order; those of one order as the rotation says" if rows else ""
    ):
        if not rows:
            add_empty_state("image", "Nothing is shown here yet", "Assign a banner to it in a campaign.")
            return
        with add_div("al-list"):
            for row in rows:
                add_html(_build_row(row))


async def _show_preview(visit: PageVisit, placement: Json, rows: list[Json]) -> None:
    live = [
        row
        for row in rows
        if row["campaignStatus"] == "active" and row["isActive"] and row["isLinkActive"]
        if row["linkState"] == "accepted" and not row["isRefused"]
    ]
    first = (live or rows)[: placement["maxBanners"]][:BANNERS_SHOWN_MAX]
    banners = [
        apply_overrides(await visit.api.get(f"/admin/banners/{row['bannerId']}"), row) for row in first
    ]
    with add_card("What readers see"), add_div("stack"):
        BannerPreview().show(banners, placement["layoutType"], instead=placement["fallbackPlaceholderUrl"])


def _build_row(row: Json) -> Markup:
    fallback = build_badge("fallback", "info") if row["isFallback"] else Markup("")
    return Markup(
        '<div class="al-pair"><span>{}</span><div class="grow"><a class="strong" href="/console/banners/{}">{}</a> {}'
        '<div class="small"><a href="/console/campaigns/{}?tab=banners">{}</a> {}</div>'
        '<div class="quiet small">{}</div></div></div>'
    ).format(
        build_thumbnail(row["bannerImageUrl"]),
        row["bannerId"],
        row["bannerTitle"],
        fallback,
        row["campaignId"],
        row["campaignName"],
        build_campaign_badge({"status": row["campaignStatus"]}),
        strings.ORDER_AND_WEIGHT.format(order=row["displayOrder"], weight=row["weight"]),
    )


async def _add_fields(visit: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    with add_div("grid-of two"):
        with add_card("What it is"), add_div("stack tight"):
            label = form.add_name("label", "Label", hint="For you and for buyers.")
            slug = form.add_text(
                "slug",
                "Slug",
                is_required=True,
                hint="The name that a page asks for, such as home-hero.",
                check=checks.check_slug,
            )
            add_hint().bind_text_from(slug, "value", backward=checks.warn_of_blockers)
            if is_new:
                _suggest_slug(label, slug)
            form.add_choice("layoutType", "Layout", strings.LAYOUTS, is_required=True)
            await _add_owner_fields(visit, form, is_new=is_new)
            form.add_text(
                "pageContext",
                "Page",
                hint="Where it is, in your words.",
                check=checks.check_at_most(PAGE_LENGTH_MAX),
            )
            form.add_flag("isActive", "Pages may ask for it")
        with add_card("How it is filled"), add_div("stack tight"):
            _add_delivery_fields(form, is_new=is_new)
        with add_card("What fits"), add_div("stack tight"):
            with add_div("grid-of tiles"):
                form.add_integer("recommendedWidth", "Width of images", is_positive=True)
                form.add_integer("recommendedHeight", "Height of images", is_positive=True)
            form.add_text(
                "recommendedAspectRatio", "Aspect ratio", check=checks.check_at_most(RATIO_LENGTH_MAX)
            )
            form.add_url("fallbackPlaceholderUrl", "Image when there is no ad")
        with add_card("Less often needed"), add_div("stack tight"):
            form.add_integer("sortOrder", "Position in lists")
            form.add_text("notes", "Notes", is_long=True).props("autogrow")


def _suggest_slug(label: ui.input | ui.textarea, slug: ui.input | ui.textarea) -> None:
    """Follow the label with the slug until somebody types one; pages ask for it, so it does not change later."""
    suggested = ""

    def follow() -> None:
        nonlocal suggested
        found = suggest_slug(label.value or "", slug.value or "", suggested)
        if found != slug.value:
            suggested = found
            slug.set_value(found)

    label.on_value_change(follow)


def _add_delivery_fields(form: Form, *, is_new: bool) -> None:
    delivery = form.add_choice("delivery", "Filled by", strings.DELIVERIES, is_required=True)
    note = add_hint(DELIVERY_NOTES.get(delivery.value, ""))
    delivery.on_value_change(lambda event: note.set_text(DELIVERY_NOTES.get(event.value, "")))
    slots = form.add_integer(
        "maxBanners", "Slots", hint="How many banners at once, at most.", is_positive=True
    )
    rotation = form.add_choice("rotation", "Of several banners", strings.ROTATIONS, hint=ROTATION_HINT)
    rotation.bind_visibility_from(delivery, "value", backward=lambda value: value == "direct")
    if is_new:
        slots.on_value_change(lambda event: rotation.set_value(suggest_rotation(event.value)))
    form.add_flag("allowPartialRender", "Show fallbacks in slots that stay empty")
    form.add_time_zone("timezone")
    form.add_price(
        "floorCpm",
        FLOOR_CPM,
        hint="For campaigns of advertisers, and in auctions. By context the site's counts too: the higher one.",
    )
    form.add_flag("isOpen", "Advertisers may use it without asking")
    auction_fields = [
        form.add_text(
            "placementType",
            "Type",
            hint="Apps ask for ads of a type; a page asks for a slug.",
            check=checks.check_at_most(TYPE_LENGTH_MAX),
        ),
        form.add_choice("auctionScoring", "Predicted clicks", strings.SCORINGS),
    ]
    for field in auction_fields:
        field.bind_visibility_from(delivery, "value", backward=lambda value: value == "auction")


def suggest_rotation(slots: float | None) -> str:
    """Suggest that banners take turns where only one of them is seen at a time."""
    return "weighted" if slots == 1 else "ordered"


async def _add_owner_fields(visit: PageVisit, form: Form, *, is_new: bool) -> None:
    """Add the publisher, which cannot change later, and the site."""
    if is_new and visit.role is not Role.PUBLISHER:
        await add_owner_field(form, visit.api, "publisher")
    site_id = form.get_initial("siteId")
    current = (site_id, await fetch_name(visit.api, "/admin/sites", site_id)) if site_id else None
    await add_reference_field(
        form,
        "siteId",
        "Site",
        api=visit.api,
        path="/admin/sites",
        shown=lambda row: row["name"],
        current=current,
        publisherId=form.get_initial("publisherId"),
    )


def _add_links(placement: Json) -> None:
    add_link_button(
        "Why this ad?", f"/console/why?placement={placement['slug']}", icon="help_outline", look="flat"
    )


def _add_actions(visit: PageVisit, placement: Json, reload: Reload) -> None:
    async def switch() -> None:
        body = {"isActive": not placement["isActive"], "updatedAt": placement["updatedAt"]}
        await visit.api.patch(f"/admin/placements/{placement['id']}", body)
        await reload()

    switch_button(
        placement["label"],
        switch,
        is_on=placement["isActive"],
        off_note=(
            "Pages that ask for it get no ad within two seconds, and the space stays empty. "
            "Its assignments stay. Offers that are already out still count and are charged."
        ),
        on_note="Pages that ask for it get ads within two seconds.",
    )


PLACEMENTS: Final = ResourcePages(
    noun="placement",
    name_field="label",
    icon="view_quilt",
    note="A slot on a page, with a name that the page asks for.",
    empty_note="A placement is where ads appear on a page. It needs a slug and a layout.",
    roles=PUBLISHER_SIDE,
    columns=[
        Column("Label", "label", sort="label"),
        Column("Slug", "slug", sort="slug", is_wide_only=True),
        Column("On or off", lambda row: build_switch_badge(is_on=row["isActive"]), sort="isActive"),
        Column("Layout", lambda row: draw_layout(row["layoutType"]), is_wide_only=True),
        Column("Filled by", lambda row: strings.DELIVERIES[row["delivery"]], sort="delivery"),
        make_number_column("Slots", "maxBanners", str, is_wide_only=True),
    ],
    search="Search by slug, label or page",
    filters={
        "isActive": ON_OR_OFF,
        "layoutType": ("Layout", strings.LAYOUTS),
        "delivery": ("Filled by", strings.DELIVERIES),
    },
    fields=_add_fields,
    defaults={
        "layoutType": "full_static",
        "delivery": "direct",
        "maxBanners": 1,
        "isActive": True,
        "placementType": "banner",
        "floorCpm": 0,
        "auctionScoring": "heuristic",
        "rotation": suggest_rotation(1),
        "timezone": "UTC",
        "sortOrder": 0,
    },
    defaults_from_query={"publisherId": "publisher", "siteId": "site", "delivery": "delivery"},
    badge=lambda placement: build_switch_badge(is_on=placement["isActive"]),
    links=_add_links,
    actions=_add_actions,
    delete_note=(
        "Pages that ask for it get no ad. Its assignments are deleted too, and this cannot be undone. "
        "A placement with an active assignment of a campaign that is not over cannot be deleted: "
        "switch it off instead."
    ),
    is_restorable=False,
    tabs={"overview": Tab("Overview", show_overview), "ads": Tab("Ads", show_ads)},
).register()
