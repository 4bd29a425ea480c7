"""The page «Why?»; what is asked stands in its address, so that it can be shared."""

from adloom.console.components.heading import heading
from adloom.console.components.views import view_links
from adloom.console.page import Visit, page
from adloom.console.pages.why.campaign import show_campaign
from adloom.console.pages.why.reader import ADDRESS, show_reader
from adloom.console.pages.why.recorded import show_recorded
from adloom.console.words import why as words
from adloom.core.actor import Role


@page(ADDRESS, title=words.TITLE)
async def why(visit: Visit) -> None:
    """Explain a decision: for a reader, of an auction, or of a campaign."""
    with heading(words.TITLE, note=words.NOTE):
        pass
    views = [(words.FOR_A_READER, ADDRESS)]
    if visit.role is not Role.PUBLISHER:
        views += [(words.A_CAMPAIGN, f"{ADDRESS}?campaign="), (words.AN_AUCTION, f"{ADDRESS}?auction=")]
    shown = next((name for name in ("campaign", "auction") if name in visit.query), "")
    view_links(views, current=f"{ADDRESS}?{shown}=" if shown else ADDRESS, label=words.VIEWS)
    match shown:
        case "campaign":
            await show_campaign(visit)
        case "auction":
            await show_recorded(visit)
        case _:
            await show_reader(visit)
