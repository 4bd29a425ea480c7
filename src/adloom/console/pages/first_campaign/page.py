"""The guide to the first campaign: four steps, then a live check of the result."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.components.attributes import set_attributes
from adloom.console.components.layout import heading
from adloom.console.page import PageVisit, page
from adloom.console.pages.first_campaign.finish import finish
from adloom.console.pages.first_campaign.plan import CampaignPlan
from adloom.console.pages.first_campaign.steps import go_step, how_step, what_step, where_step
from adloom.console.shell import ADMINS

FIRST_CAMPAIGN_STEPS: Final = ("Where", "What", "How", "Go")


STEPS: Final = (where_step, what_step, how_step, go_step)


@page("/console/first-campaign", title="My first campaign", roles=ADMINS)
async def first_campaign(visit: PageVisit) -> None:
    plan = CampaignPlan()
    number = 0

    @ui.refreshable
    async def body() -> None:
        _trail(number)
        if number < len(STEPS):
            await STEPS[number](visit, plan, turn)
        else:
            await finish(visit, plan)

    async def turn(by: int) -> None:
        nonlocal number
        number += by
        await body.refresh()

    heading(
        "My first campaign",
        note="Four small steps, and your ad is on a page. Everything can be changed later.",
    )
    await body()


def _trail(current: int) -> None:
    steps = Markup("").join(
        Markup('<li class="{}"{}><b>{}</b>{}</li>').format(
            "done" if number < current else "",
            Markup(' aria-current="step"') if number == current else "",
            "✓" if number < current else number + 1,
            label,
        )
        for number, label in enumerate(FIRST_CAMPAIGN_STEPS)
    )
    label = f"Step {min(current + 1, len(FIRST_CAMPAIGN_STEPS))} of {len(FIRST_CAMPAIGN_STEPS)}"
    set_attributes(ui.html(steps, sanitize=False, tag="ol").classes("al-steps"), aria_label=label)
