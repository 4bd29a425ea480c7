"""The page "Why?". Its address holds the question, so that it can be shared."""

from adloom.console.components.layout import heading, view_links
from adloom.console.page import PageVisit, page
from adloom.console.pages.why.campaign import show_campaign
from adloom.console.pages.why.reader import ADDRESS, show_reader
from adloom.console.pages.why.recorded import show_recorded
from adloom.core.actor import Role


@page(ADDRESS, title="Why?")
async def why(visit: PageVisit) -> None:
    heading(
        "Why?", note="Which ad a reader would get, how an auction was decided, and what stops a campaign."
    )
    views = [("For a reader", ADDRESS)]
    if visit.role is not Role.PUBLISHER:
        views += [("A campaign", f"{ADDRESS}?campaign="), ("A recorded auction", f"{ADDRESS}?auction=")]
    shown = next((name for name in ("campaign", "auction") if name in visit.query), "")
    view_links(views, current=f"{ADDRESS}?{shown}=" if shown else ADDRESS, label="Ways to ask")
    match shown:
        case "campaign":
            await show_campaign(visit)
        case "auction":
            await show_recorded(visit)
        case _:
            await show_reader(visit)
