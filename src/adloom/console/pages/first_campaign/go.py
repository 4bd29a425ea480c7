"""The last look, and making it real."""

from nicegui import ui

from adloom.console import strings
from adloom.console.client import ProblemError
from adloom.console.components.banner_preview import BannerPreview, with_neighbours
from adloom.console.components.format import day, money
from adloom.console.components.heading import card
from adloom.console.components.notice import notice
from adloom.console.page import Visit
from adloom.console.pages.first_campaign.plan import Plan
from adloom.console.pages.first_campaign.step import Turn


async def go_step(visit: Visit, plan: Plan, turn: Turn) -> None:
    """Say in one sentence what will be, then do it and show how far it is."""

    async def make() -> None:
        button.disable()
        back.disable()
        refusal.clear()
        progress.clear()
        try:
            await plan.carry_out(visit.api, tell)
        except ProblemError as error:
            with refusal:
                notice(
                    error.message,
                    kind="bad",
                    title="This step was refused. What was made before stays, and you can try again.",
                )
            button.text = "Try again"
            button.enable()
            back.enable()
            return
        await turn(1)

    def tell(step: str) -> None:
        with progress:
            ui.html(strings.FIRST_CAMPAIGN_PARTS[step], sanitize=False, tag="li")

    with ui.element("div").classes("al-editor"):
        with card("All of it at a glance"), ui.element("div").classes("stack"):
            ui.label(summary(plan)).classes("al-sentence")
            ui.label(
                "The campaign becomes active at once: readers can see the ad within two seconds."
            ).classes("quiet")
            progress = ui.element("ul").classes("al-progress").props('aria-live="polite"')
            refusal = ui.element("div")
            with ui.element("div").classes("row-of"):
                back = ui.button("Back", on_click=lambda: turn(-1)).props("flat")
                button = ui.button("Put it on the page", on_click=make).props("unelevated")
        with card():
            BannerPreview("desktop").show(with_neighbours(plan.banner, plan.layout), plan.layout)


def summary(plan: Plan) -> str:
    """Say what the plan is, in one sentence."""
    ends_at, bid = plan.campaign.get("endsAt"), plan.campaign.get("bidAmount")
    budget = plan.campaign.get("budgetDailyPaisa")
    limit = f" and at most {money(budget)} a day" if budget is not None else ""
    return "«{headline}» on «{placement}», {until}, {cost}.".format(
        headline=plan.banner["headline"],
        placement=plan.placement["label"],
        until=f"until {day(ends_at)}" if ends_at else "until you pause it",
        cost="for {bid} per thousand impressions{budget}".format(bid=f"{bid:,.2f}", budget=limit)
        if bid
        else "at no cost",
    )
