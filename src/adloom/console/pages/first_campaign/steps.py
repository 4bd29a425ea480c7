"""The guide's choices, its steps (where, what, how, go), and the requests that carry them out."""

import re
from collections.abc import Awaitable, Callable
from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json, ProblemError
from adloom.console.components.banner_preview import BANNERS_ABREAST, BannerPreview, with_neighbours
from adloom.console.components.format import format_day, format_money, format_price
from adloom.console.components.forms import checks
from adloom.console.components.forms.checks import SLUG_LENGTH_MAX, make_slug
from adloom.console.components.forms.fields import add_reference_field
from adloom.console.components.forms.form import Form
from adloom.console.components.forms.upload import PICTURES, PICTURES_NOTE, add_upload
from adloom.console.components.layout import add_card, add_div, add_hint, add_html, add_notice, set_attributes
from adloom.console.page import PageVisit

PARTS: Final = {
    "placement": "The placement",
    "banner": "The banner",
    "campaign": "The campaign",
    "link": "The campaign may use the placement",
    "assignment": "The banner is on the placement",
    "active": "The campaign is active",
}
STEPS: Final = tuple(PARTS)
# Heavier than other banners, so that the new ad is shown.
WEIGHT: Final = 1_000
SLUGS_TRIED_MAX: Final = 100  # Beyond this the API says that the slug is in use.
SAMPLE: Final = "sample"
EXISTING: Final = "existing"
NEW_PLACEMENT: Final = "new"
# The placement on the front page of the sample site that it keeps free.
SAMPLE_SLUG: Final = "hedgerow-yours"
SAMPLE_PATH: Final = "/sample"
IMAGES_SHOWN_MAX: Final = 6
BANNERS_READ: Final = 30
HEADLINE_LENGTH_MAX: Final = 255
BUTTON_LENGTH_MAX: Final = 100
NEW_LABEL: Final = "Home page, at the top"
# Pictures of this installation; others may be gone, such as those of examples.
OWN_PICTURE: Final = re.compile(r"https?://[^/]+/p/[0-9a-f]{64}\.\w+")


class CampaignPlan:
    """The choices so far, and what was created from them: a second try continues where the first failed."""

    def __init__(self) -> None:
        self.where: Json = {}  # As it was chosen, for those who come back to this step.
        self.placement: Json = {}
        self.banner: Json = {}
        self.campaign: Json = {}
        self.made: dict[str, Json] = {}

    @property
    def layout(self) -> str:
        return self.placement["layoutType"]

    async def carry_out(self, api: ApiClient, on_step: Callable[[str], None]) -> None:
        """Create what does not exist yet, in order, and report each finished step."""
        for step in STEPS:
            if step not in self.made:
                self.made[step] = await self._do(api, step)
            on_step(step)

    async def _do(self, api: ApiClient, step: str) -> Json:
        if step == "placement":
            return (
                self.placement
                if "id" in self.placement
                else await api.post("/admin/placements", self.placement)
            )
        if step in {"banner", "campaign"}:
            return await api.post(f"/admin/{step}s", self.banner if step == "banner" else self.campaign)
        campaign = f"/admin/campaigns/{self.made['campaign']['id']}"
        placement_id = self.made["placement"]["id"]
        match step:
            case "link":
                return await api.post(f"{campaign}/placements", {"placementId": placement_id})
            case "assignment":
                body = {"bannerId": self.made["banner"]["id"], "weight": WEIGHT}
                return await api.post(f"{campaign}/placements/{placement_id}/banners", body)
            case _:
                return await api.patch(f"{campaign}/activate")


def describe_placement(label: str, layout: str) -> Json:
    return {
        "label": label,
        "slug": make_slug(label),
        "layoutType": layout,
        "maxBanners": (slots := BANNERS_ABREAST.get(layout, 1)),
        "rotation": "weighted" if slots == 1 else "ordered",
        "allowPartialRender": True,
    }


def describe_slug(slug: str) -> str:
    return f"Your page will ask for it as {slug}. {checks.warn_of_blockers(slug)}".strip()


# Forward by 1, back by -1.
GoTo = Callable[[int], Awaitable[None]]


def show_next_buttons(form: Form, turn: GoTo, on_next: Callable[[], None], *, is_first: bool = False) -> None:
    async def go_on() -> None:
        on_next()
        await turn(1)

    async def go_back() -> None:
        await turn(-1)

    with add_div("row-of"):
        if not is_first:
            ui.button("Back", on_click=go_back).props("flat")
        form.add_buttons("Next", go_on)


async def show_where_step(visit: PageVisit, plan: CampaignPlan, turn: GoTo) -> None:
    """Choose the sample's front page, an existing placement or a new one."""
    sample = await find_sample_placement(visit.api)
    some = await visit.api.get("/admin/placements", isActive=True, delivery="direct", pageSize=1)
    options = {SAMPLE: "On the sample's front page"} if sample else {}
    options |= {EXISTING: "On a placement that is there already"} if some["totalCount"] else {}
    options |= {NEW_PLACEMENT: "On a new placement"}
    with add_card("Where should it appear?", classes="al-narrow"), add_div("stack"):
        chosen = plan.where.get("choice")
        choice = ui.radio(options, value=chosen if chosen in options else next(iter(options)))
        form = Form({"label": NEW_LABEL, "layoutType": "full_static", "placementId": None} | plan.where)
        if sample:
            with ui.element("div").bind_visibility_from(choice, "value", value=SAMPLE):
                add_hint(
                    f"The quickest way to see it: {sample['label']}, in the magazine that came with this installation."
                )
        with ui.element("div").bind_visibility_from(choice, "value", value=EXISTING):
            known = await add_reference_field(
                form,
                "placementId",
                "Placement",
                api=visit.api,
                path="/admin/placements",
                shown=lambda row: f"{row['label']} ({row['slug']})",
                hint="One of your pages already asks for it.",
                isActive=True,
                delivery="direct",
            )
        with add_div("stack tight").bind_visibility_from(choice, "value", value=NEW_PLACEMENT):
            _add_new_fields(form)

        async def go_on(by: int) -> None:
            plan.where = {**form.read_values(), "choice": choice.value}
            await choose_place(visit.api, plan)
            plan.made.pop("placement", None)
            await turn(by)

        show_next_buttons(form, go_on, lambda: None, is_first=True)
    known.validation = lambda value: None if value or choice.value != EXISTING else "is required"


def _add_new_fields(form: Form) -> None:
    label = form.add_text("label", "What do you call the place?", check=checks.check_name)
    form.add_choice("layoutType", "Layout", strings.LAYOUTS)
    note = add_hint()
    note.bind_text_from(label, "value", backward=lambda value: describe_slug(make_slug(value or "")))
    add_hint("You get two lines to put into your page.")


async def choose_place(api: ApiClient, plan: CampaignPlan) -> None:
    """Find or describe the placement that was chosen."""
    match plan.where["choice"]:
        case "sample" if sample := await find_sample_placement(api):
            plan.placement = sample
        case "existing":
            plan.placement = await api.get(f"/admin/placements/{plan.where.get('placementId')}")
        case _:
            layout = plan.where.get("layoutType")
            plan.placement = describe_placement(
                plan.where.get("label") or NEW_LABEL, layout if layout in strings.LAYOUTS else "full_static"
            )
            plan.placement["slug"] = await find_free_slug(api, plan.placement["slug"])


async def find_free_slug(api: ApiClient, slug: str) -> str:
    """Return the slug, or one with a number behind it if others have it."""
    rows = await api.get_items("/admin/placements", search=slug, pageSize=SLUGS_TRIED_MAX)
    taken = {row["slug"] for row in rows}
    numbered = (f"{slug[: SLUG_LENGTH_MAX - 4]}-{number}" for number in range(2, SLUGS_TRIED_MAX))
    return next((one for one in (slug, *numbered) if one not in taken), slug)


async def find_sample_placement(api: ApiClient) -> Json | None:
    answer = await api.get("/admin/placements", search=SAMPLE_SLUG, isActive=True, pageSize=5)
    return next((row for row in answer["items"] if is_of_sample(row)), None)


def is_of_sample(placement: Json) -> bool:
    return placement.get("slug") == SAMPLE_SLUG and placement.get("pageContext") == SAMPLE


async def show_what_step(visit: PageVisit, plan: CampaignPlan, turn: GoTo) -> None:
    known = await read_images(visit.api)
    own = [one for one in known if OWN_PICTURE.fullmatch(one["primaryImageUrl"])]
    first = {
        "headline": "Something worth a look",
        "ctaLabel": "Have a look",
        "primaryImageUrl": own[0]["primaryImageUrl"] if own else "",
        "ctaUrl": own[0]["ctaUrl"] if own else "",
    }
    form = Form(plan.banner or first, is_focused=True)
    with add_div("al-editor"):
        with add_card("What do readers see?"), add_div("stack tight"):
            uploaded: Json = {}
            fields = _add_banner_fields(form, known, visit.api, uploaded.update)

            def keep() -> None:
                values = {name: value for name, value in form.read_values().items() if value}
                if values["primaryImageUrl"] == uploaded.get("primaryImageUrl"):
                    values = {name: value for name, value in uploaded.items() if value} | values
                plan.banner = {**values, "title": values["headline"]}
                plan.made.pop("banner", None)

            show_next_buttons(form, turn, keep)
        with add_card("Preview"), add_div("stack"):
            preview = BannerPreview()

    def show() -> None:
        preview.show(with_neighbours(form.read_values(), plan.layout), plan.layout)

    for field in fields:
        field.on_value_change(show)
    show()


def _add_banner_fields(
    form: Form, known: list[Json], api: ApiClient, on_file: Callable[[Json], None]
) -> list[ui.input | ui.textarea]:
    headline = form.add_text(
        "headline", "Headline", is_required=True, check=checks.check_at_most(HEADLINE_LENGTH_MAX)
    )
    second = form.add_text("subheadline", "A second line", check=checks.check_at_most(HEADLINE_LENGTH_MAX))
    add_upload(form, api, accepted=PICTURES, note=PICTURES_NOTE, on_file=on_file)
    image = form.add_url(
        "primaryImageUrl",
        "Or the address of a picture",
        is_required=True,
        hint="It has to be reachable for readers: https://…",
    )
    if known:
        add_hint("Or take one that is there already:")
        with add_div("al-pictures"):
            for banner in known:
                _show_picture(banner, image)
    button = form.add_text("ctaLabel", "Button", check=checks.check_at_most(BUTTON_LENGTH_MAX))
    leads_to = form.add_url("ctaUrl", "Leads to", is_required=True)
    return [headline, second, image, button, leads_to]


def _show_picture(banner: Json, image: ui.input | ui.textarea) -> None:
    address = banner["primaryImageUrl"]
    label = f"Use this picture: {banner['title']}"
    button = set_attributes(ui.element("button"), type="button", aria_label=label)
    with button.on("click", lambda: image.set_value(address)):
        set_attributes(ui.element("img"), src=address, alt="")


async def read_images(api: ApiClient) -> list[Json]:
    """Return a few images of the house's banners, each once: those of advertisers are theirs."""
    answer = await api.get("/admin/banners", pageSize=BANNERS_READ)
    found: dict[str, Json] = {}
    for banner in answer["items"]:
        if banner["advertiserId"] is None:
            found.setdefault(banner["primaryImageUrl"], banner)
    return list(found.values())[:IMAGES_SHOWN_MAX]


async def show_how_step(_: PageVisit, plan: CampaignPlan, turn: GoTo) -> None:
    form = Form(plan.campaign or {"name": "My first campaign"}, is_focused=True)
    with add_card("How should it run?", classes="al-narrow"), add_div("stack tight"):
        form.add_name("name", "Name of the campaign")
        form.add_moment("endsAt", "Runs until (UTC)", zone=lambda: "UTC", hint="Empty: until you pause it.")
        form.add_price(
            "bidAmount",
            "Pays for a thousand impressions",
            hint="Empty: it costs nothing. Good for a first try.",
        )
        form.add_money(
            "budgetDailyPaisa",
            "A day at most",
            hint="Empty: no limit. It is never exceeded, not by one impression.",
        )

        def keep() -> None:
            plan.campaign = form.create_body()
            plan.made.pop("campaign", None)

        show_next_buttons(form, turn, keep)


async def go_step(visit: PageVisit, plan: CampaignPlan, turn: GoTo) -> None:
    async def make() -> None:
        button.disable()
        back.disable()
        refusal.clear()
        progress.clear()
        try:
            await plan.carry_out(visit.api, show_step)
        except ProblemError as error:
            with refusal:
                add_notice(
                    error.message,
                    kind="bad",
                    title="This step was refused. What was made before stays, and you can try again.",
                )
            await turn(0)  # The address keeps what was made.
            button.text = "Try again"
            button.enable()
            back.enable()
            return
        await turn(1)

    def show_step(step: str) -> None:
        with progress:
            add_html(PARTS[step], tag="li")

    with add_div("al-editor"):
        with add_card("All of it at a glance"), add_div("stack"):
            ui.label(show_summary(plan)).classes("al-sentence")
            ui.label(
                "The campaign becomes active at once: readers can see the ad within two seconds."
            ).classes("quiet")
            progress = ui.element("ul").classes("al-progress").props('aria-live="polite"')
            refusal = ui.element("div")
            with add_div("row-of"):
                back = ui.button("Back", on_click=lambda: turn(-1)).props("flat")
                button = ui.button("Put it on the page", on_click=make).props("unelevated")
        with add_card():
            BannerPreview("desktop").show(with_neighbours(plan.banner, plan.layout), plan.layout)


def show_summary(plan: CampaignPlan) -> str:
    ends_at, bid = plan.campaign.get("endsAt"), plan.campaign.get("bidAmount")
    budget = plan.campaign.get("budgetDailyPaisa")
    limit = f" and at most {format_money(budget)} a day" if budget is not None else ""
    until = f"until {format_day(ends_at)}" if ends_at else "until you pause it"
    cost = f"for {format_price(bid)} per thousand impressions{limit}" if bid else "at no cost"
    return f"“{plan.banner['headline']}” on “{plan.placement['label']}”, {until}, {cost}."
