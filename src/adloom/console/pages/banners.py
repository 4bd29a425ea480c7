"""The pages of banners: the list, the form with a live preview, where a banner is shown, and its schedule."""

from typing import Any, Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json
from adloom.console.components.banner_preview import BannerPreview, with_neighbours
from adloom.console.components.format import format_moment
from adloom.console.components.forms import checks
from adloom.console.components.forms.fields import add_owner_field
from adloom.console.components.forms.form import Form
from adloom.console.components.forms.upload import add_upload
from adloom.console.components.layout import add_card, add_div, add_empty_state, add_hint, add_html
from adloom.console.components.messages import notify_success
from adloom.console.components.schedule_calendar import is_banner_on, list_days, show_calendar
from adloom.console.components.status import build_banner_badge, build_campaign_badge, build_thumbnail
from adloom.console.components.table import Column
from adloom.console.history import read_values_before
from adloom.console.page import PageVisit
from adloom.console.pages.campaigns.overview import show_results
from adloom.console.pages.frequency_caps import show_caps
from adloom.console.pages.preview_link import preview_button
from adloom.console.resource_pages import (
    ON_OR_OFF,
    Reload,
    ResourcePages,
    Tab,
    notify_put_back,
    switch_button,
)
from adloom.console.shell import ADVERTISER_SIDE, link_thing
from adloom.core.caller import Role
from adloom.schedule.schedule import derive_status

REFERENCES: Final = {"brand": "Brand", "category": "Category", "product": "Product", "seo": "SEO record"}

LAYOUT_FIRST: Final = "full_static"
VARIANT_PARTS: Final = 2
PRESETS: Final = {
    "": "Every day",
    "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR": "On working days",
    "FREQ=WEEKLY;BYDAY=SA,SU": "On weekends",
    "own": "As a rule says",
}
SCHEDULE_FIELDS: Final = frozenset(
    {
        "scheduleStatus",
        "scheduleTimezone",
        "publishAt",
        "expiresAt",
        "recurrenceRule",
        "recurrenceWindowStart",
        "recurrenceWindowEnd",
    }
)
OWN = "own"
DRAFT = "draft"
ASSIGNMENTS_MAX: Final = 100


async def add_banner_fields(visit: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    """Add the fields, and a live preview beside them."""
    with add_div("al-editor"):
        with add_div("stack"):
            with add_card("Text"), add_div("stack tight"):
                await _add_text_fields(visit, form, is_new=is_new)
            with add_card("Image"), add_div("stack tight"):
                _add_image_fields(form, visit.api)
            with (
                add_card(),
                ui.expansion("Counting and sorting").classes("full"),
                add_div("stack tight"),
            ):
                await _add_other_fields(visit, form)
        with add_div("al-sticky"), add_card("Preview"), add_div("stack"):
            _show_preview(form)


def _show_preview(form: Form) -> None:
    layout = ui.select(strings.LAYOUTS, label="In the layout", value=LAYOUT_FIRST).props("outlined dense")
    preview = BannerPreview()

    def show() -> None:
        preview.show(with_neighbours(form.read_values(), layout.value), layout.value)

    layout.on_value_change(show)
    form.on_any_change(show)
    show()


async def _add_text_fields(visit: PageVisit, form: Form, *, is_new: bool) -> None:
    form.add_name(
        "title", "Title", hint="For you. Auctions and contextual slots show it if there is no headline."
    )
    if is_new and visit.role is not Role.ADVERTISER:
        await add_owner_field(form, visit.api, "advertiser")
    form.add_text("headline", "Headline", check=checks.check_at_most(255))
    form.add_text("subheadline", "Subheadline", check=checks.check_at_most(255))
    form.add_text("description", "Description", is_long=True).props("autogrow")
    form.add_text("ctaLabel", "Button", check=checks.check_at_most(100))
    form.add_url("ctaUrl", "Leads to", hint="Without an address it cannot be clicked.")
    form.add_flag("ctaOpenNewTab", "Opens in a new tab")


def _add_image_fields(form: Form, api: ApiClient) -> None:
    add_upload(form, api)
    form.add_url(
        "primaryImageUrl",
        "Address of the picture",
        is_required=True,
        hint="A video needs one too: it is shown before it plays.",
    )
    form.add_text(
        "primaryImageAlt",
        "What the picture shows",
        hint="Read aloud to those who cannot see it.",
        check=checks.check_at_most(255),
    )
    with add_div("grid-of tiles"):
        form.add_integer("width", "Width", is_positive=True, hint="In pixels, for slots by context")
        form.add_integer("height", "Height", is_positive=True, hint="Empty: it fits every slot")
    form.add_url("mobileImageUrl", "Picture on phones", hint="Empty: the same picture.")
    form.add_url("videoUrl", "Video", hint="An MP4, played without sound.")
    form.add_text(
        "bgColor",
        "Background",
        hint="Such as #ff8800: seen while the picture loads.",
        check=checks.check_colour,
    )
    form.add_text(
        "mediaVariants",
        "Variants of the picture",
        hint=(
            "One a line: a language (de) or a screen (tablet), a space, and the address. html is a creative in a frame."
        ),
        check=_find_wrong_lines,
        is_long=True,
        shown=write_variants(form.get_initial("mediaVariants") or {}),
    )
    form.encode("mediaVariants", parse_variants, write_variants)


async def _add_other_fields(visit: PageVisit, form: Form) -> None:
    with add_div("grid-of two"):
        form.add_text("utmSource", "utm_source")
        form.add_text("utmMedium", "utm_medium")
        form.add_text("utmCampaign", "utm_campaign")
        form.add_text("utmContent", "utm_content")
    form.add_texts("tags", "Tags", hint="Press Enter after each.")
    form.add_integer("priority", "Priority", hint=strings.PRIORITY_HINT)
    form.add_choice("source", "Source", strings.SOURCES, is_required=True)
    for kind, label in REFERENCES.items():
        records = await visit.api.get(f"/admin/references/{kind}", pageSize=100)
        if records["items"]:
            options: dict[Any, str] = {record["id"]: record["label"] for record in records["items"]}
            form.add_choice(f"{kind}Id", label, options, is_clearable=True)
    form.add_flag("isEvergreenFallback", "Shown where a placement has nothing else at all")
    form.add_url("fallbackPlaceholderUrl", "Picture where its own cannot be loaded")


def write_variants(variants: dict[str, str]) -> str:
    return "\n".join(f"{name} {address}" for name, address in variants.items())


def parse_variants(text: str) -> dict[str, str]:
    """Parse lines of a name and an address; other lines are ignored."""
    parts = [line.split(maxsplit=1) for line in (text or "").splitlines()]
    return {pair[0]: pair[1].strip() for pair in parts if len(pair) == VARIANT_PARTS}


def _find_wrong_lines(text: str) -> str | None:
    lines = [line for line in text.splitlines() if line.strip()]
    found = parse_variants(text)
    if len(found) < len(lines):
        return "must be lines with a name, a space and an address"
    return next((wrong for wrong in map(checks.check_web_address, found.values()) if wrong), None)


async def show_schedule(visit: PageVisit, banner: Json, reload: Reload) -> None:
    """Show the fields, and a live calendar of the next weeks beside them."""
    may_write = visit.may_write and not banner["deletedAt"]
    before = await read_values_before(visit, "banner", banner) if may_write else {}
    form = Form(banner, suggested=before)
    told = add_div("stack")
    with add_div("al-editor"):
        with add_card("Schedule"), add_div("stack tight"):
            _add_fields(form)
            draft = ui.switch(
                "Still a draft: not shown, whatever the dates say",
                value=form.get_initial("scheduleStatus") == DRAFT,
            )
            add_hint("Without dates it may be shown at any time.")

            async def save() -> None:
                changes = form.patch_body()
                status = _preview_saved(banner, form, visit, is_draft=bool(draft.value))["scheduleStatus"]
                if DRAFT in {status, banner["scheduleStatus"]} and status != banner["scheduleStatus"]:
                    changes |= {"scheduleStatus": status, "updatedAt": banner["updatedAt"]}
                if changes:
                    await visit.api.patch(f"/admin/banners/{banner['id']}/schedule", changes)
                notify_success("The schedule is saved." if changes else strings.NOTHING_CHANGED)
                await reload()

            if may_write:
                form.add_buttons("Save", save)
        with add_card(strings.NEXT_WEEKS):
            _show_calendar(visit, banner, form, draft)
    if before:
        notify_put_back(told, before, SCHEDULE_FIELDS)


def _add_fields(form: Form) -> None:
    form.add_period("scheduleTimezone", ("publishAt", "From"), ("expiresAt", "Until"))
    with add_div("grid-of tiles"):
        form.add_time_of_day("recurrenceWindowStart", "Every day from")
        form.add_time_of_day("recurrenceWindowEnd", "Every day until")
    add_hint("A window may go over midnight: 22:00 until 02:00.")
    given = form.get_initial("recurrenceRule") or ""
    preset = ui.select(PRESETS, label="Repeats", value=given if given in PRESETS else OWN).props(
        "outlined dense"
    )
    rule = form.add_text(
        "recurrenceRule",
        "Recurrence rule (RFC 5545)",
        hint="Such as FREQ=WEEKLY;BYDAY=MO,FR. Empty is every day.",
        check=checks.check_recurrence,
    )
    rule.bind_visibility_from(preset, "value", value=OWN)

    def choose_preset() -> None:
        if preset.value != OWN:
            rule.value = preset.value

    preset.on_value_change(choose_preset)


def _show_calendar(visit: PageVisit, banner: Json, form: Form, draft: ui.switch) -> None:
    @ui.refreshable
    def show_weeks() -> None:
        shown = _preview_saved(banner, form, visit, is_draft=bool(draft.value))
        zone = visit.choose_zone(shown["scheduleTimezone"])
        show_calendar(list_days(is_banner_on(shown), zone=zone, now=visit.now), now=visit.now, zone=zone)

    def redraw() -> None:
        if form.is_valid():
            show_weeks.refresh()

    show_weeks()
    form.on_any_change(redraw)
    draft.on_value_change(redraw)


def _preview_saved(banner: Json, form: Form, visit: PageVisit, *, is_draft: bool) -> Json:
    """Return the banner as it would be when saved, with the status that follows from its dates."""
    values = form.read_values()
    has_other_dates = any(values[name] != banner[name] for name in ("publishAt", "expiresAt"))
    if is_draft:
        values["scheduleStatus"] = DRAFT
    elif has_other_dates or banner["scheduleStatus"] == DRAFT:
        status = derive_status(
            publish_at=format_moment(values["publishAt"]),
            expires_at=format_moment(values["expiresAt"]),
            now=visit.now,
        )
        values["scheduleStatus"] = status.value
    return {**banner, **values}


def _build_title(row: Json) -> Markup:
    return Markup('<span class="al-titled">{}<a href="{}">{}</a></span>').format(
        build_thumbnail(row["mobileImageUrl"] or row["primaryImageUrl"]),
        f"/console/banners/{row['id']}",
        row["title"],
    )


def _link_target(row: Json) -> Markup:
    address: str = row["ctaUrl"] or ""
    shown = address.removeprefix("https://").removeprefix("http://")
    return Markup('<span class="al-cut" title="{}">{}</span>').format(address, shown)


async def _show_uses(visit: PageVisit, banner: Json, _: Reload) -> None:
    await show_results(visit, bannerId=banner["id"])
    answer = await visit.api.get("/admin/assignments", bannerId=banner["id"], pageSize=ASSIGNMENTS_MAX)
    with add_card("Where it is shown"):
        if not banner["deletedAt"]:
            preview_button(visit, banner["id"])
        if not answer["items"]:
            add_empty_state(
                "campaign",
                "Not shown anywhere yet",
                "Open a campaign, and assign this banner to one of its placements.",
                action="To the campaigns",
                href="/console/campaigns",
            )
        with add_div("al-list"):
            for row in answer["items"]:
                with add_div("row-of"):
                    add_html(_build_use(row, visit.role)).classes("grow")
                    if not banner["deletedAt"]:
                        preview_button(visit, banner["id"], (row["placementId"], row["placementLabel"]))


def _build_use(row: Json, role: Role) -> Markup:
    return Markup(
        '<div class="row-of apart"><div><a class="strong" href="/console/campaigns/{}?tab=banners">{}</a> {}'
        '<div class="quiet small">{} · {}</div></div>'
        '<span class="quiet small">order {} · weight {}</span></div>'
    ).format(
        row["campaignId"],
        row["campaignName"],
        build_campaign_badge({"status": row["campaignStatus"]}),
        link_thing("placement", row["placementId"], row["placementLabel"], role),
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
    empty_note="A banner is what readers see. It needs a title and a picture, which can be uploaded.",
    roles=ADVERTISER_SIDE,
    columns=[
        Column("Title", _build_title, sort="title"),
        Column("Status", build_banner_badge),
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
    badge=build_banner_badge,
    actions=_add_actions,
    delete_note=(
        "It is not offered any more within two seconds, and it leaves the lists. Offers that are already out "
        "still count and are charged, and reports keep it. "
        "You can undo this: it is then back in its campaigns where it was."
    ),
    tabs={
        "look": Tab("Look and text"),
        "where": Tab("Where it is shown", _show_uses),
        "schedule": Tab("Schedule", show_schedule, SCHEDULE_FIELDS),
        "caps": Tab("Frequency caps", show_caps),
    },
    tab_after_create="where",
).register()
