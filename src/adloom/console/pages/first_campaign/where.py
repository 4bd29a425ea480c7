"""Where the ad shall appear."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import ApiClient, Json
from adloom.console.components import checks
from adloom.console.components.catalog_form import CatalogForm
from adloom.console.components.chooser import chooser
from adloom.console.components.heading import card
from adloom.console.page import Visit
from adloom.console.pages.first_campaign.plan import Plan, new_placement, slug_of
from adloom.console.pages.first_campaign.step import Turn, next_buttons

SAMPLE: Final = "sample"
EXISTING: Final = "existing"
NEW: Final = "new"
# The sample marks what belongs to it, and has this placement on its front page.
SAMPLE_SLUG: Final = "hedgerow-top"
SAMPLE_PATH: Final = "/sample"


async def where_step(visit: Visit, plan: Plan, turn: Turn) -> None:
    """Choose the sample's page, a placement that is there, or a new one."""
    sample = await sample_placement(visit.api)
    some = await visit.api.get("/admin/placements", isActive=True, delivery="direct", pageSize=1)
    options = {SAMPLE: "On the sample's front page"} if sample else {}
    options |= {EXISTING: "On a placement that is there already"} if some["totalCount"] else {}
    options |= {NEW: "On a new placement"}
    with card("Where shall it appear?", classes="al-narrow"), ui.element("div").classes("stack"):
        choice = ui.radio(options, value=next(iter(options)))
        form = CatalogForm(
            {"label": "Home page, at the top", "layoutType": "full_static", "placementId": None}
        )
        if sample:
            with ui.element("div").bind_visibility_from(choice, "value", value=SAMPLE):
                ui.label(
                    f"The quickest way to see it: {sample['label']}, in the magazine that came with this installation."
                ).classes("quiet small")
        with ui.element("div").bind_visibility_from(choice, "value", value=EXISTING):
            known = await chooser(
                form,
                "placementId",
                "Placement",
                api=visit.api,
                path="/admin/placements",
                shown=lambda row: f"{row['label']} ({row['slug']})",
                hint="A page of yours asks for it.",
                isActive=True,
                delivery="direct",
            )
        with ui.element("div").classes("stack tight").bind_visibility_from(choice, "value", value=NEW):
            _new_fields(form)

        async def forth(by: int) -> None:
            await _decide(visit.api, plan, form, choice.value, sample)
            await turn(by)

        next_buttons(form, forth, lambda: None, is_first=True)
    known.validation = lambda value: None if value or choice.value != EXISTING else "is required"


def _new_fields(form: CatalogForm) -> None:
    label = form.text("label", "What do you call the place?", check=checks.name)
    form.choice("layoutType", "Layout", strings.LAYOUTS)
    note = ui.label().classes("quiet small")
    note.bind_text_from(
        label, "value", backward=lambda value: f"Your page will ask for it as {slug_of(value or '')}."
    )
    ui.label("You get two lines to put into your page.").classes("quiet small")


async def _decide(api: ApiClient, plan: Plan, form: CatalogForm, choice: str, sample: Json | None) -> None:
    values = form.values()
    match choice:
        case "sample" if sample:
            plan.placement = sample
        case "existing":
            plan.placement = await api.get(f"/admin/placements/{values['placementId']}")
        case _:
            plan.placement = new_placement(values["label"] or "Home page, at the top", values["layoutType"])
    plan.made.pop("placement", None)


async def sample_placement(api: ApiClient) -> Json | None:
    """Find the placement of the sample's front page, if the sample is there."""
    answer = await api.get("/admin/placements", search=SAMPLE_SLUG, isActive=True, pageSize=5)
    return next((row for row in answer["items"] if is_of_sample(row)), None)


def is_of_sample(placement: Json) -> bool:
    """Tell whether a placement is the one on the sample's front page."""
    return placement.get("slug") == SAMPLE_SLUG and placement.get("pageContext") == SAMPLE
