"""Where a publisher decides about ads: of each of its sites in turn, and on the page of a site."""

from typing import Final

from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import format_count
from adloom.console.components.layout import add_div, add_empty_state, add_heading, add_notice, add_view_links
from adloom.console.page import PageVisit, register_page
from adloom.console.pages.sites.inbox import STATES, ApprovalInbox
from adloom.console.resource_pages import Reload
from adloom.console.shell import PUBLISHER_SIDE

ADDRESS: Final = "/console/approvals"
SITES_MAX: Final = 100


@register_page(ADDRESS, title="Approvals", roles=PUBLISHER_SIDE)
async def show_approvals(visit: PageVisit) -> None:
    add_heading("Approvals", note="Ads that bid for your sites. You decide once for a whole site.")
    sites = await visit.api.get_items("/admin/approvals", pageSize=SITES_MAX)
    if not sites:
        add_empty_state(
            "inbox",
            "No site yet",
            "Ads are approved for a site. Add one, and give it contextual placements.",
            action="To the sites",
            href="/console/sites",
        )
        return
    asked = visit.query.get("site")
    site = next((one for one in sites if one["siteId"] == asked), sites[0])
    with add_div("al-bar"):
        names = {one["siteId"]: f"{one['name']} ({format_count(one['pending'])} waiting)" for one in sites}
        field = ui.select(names, label="Site", value=site["siteId"], with_input=True)
        field.props('outlined dense options-dense data-field="site"').style("min-width: 18rem")
        field.on_value_change(
            lambda event: ui.navigate.to(f"{ADDRESS}?site={event.value}") if event.value else None
        )
    await _show(visit, site["siteId"], f"{ADDRESS}?site={site['siteId']}&state=")


async def show_site_approvals(visit: PageVisit, site: Json, _: Reload) -> None:
    """Show the ads of one site, as a tab of its page."""
    if site["approvalMode"] != "manual":
        add_notice("Some ads are approved by the site's settings. You can still reject each of them here.")
    await _show(visit, site["id"], f"{visit.path}?tab=approvals&state=")


async def count_decisions(visit: PageVisit, site_id: str) -> Json:
    """Return how many ads of a site wait, and how many were decided about."""
    (counts,) = await visit.api.get_items("/admin/approvals", siteId=site_id)
    return counts


async def _show(visit: PageVisit, site_id: str, address: str) -> None:
    asked = visit.query.get("state", "")
    state = asked if asked in STATES else "pending"

    @ui.refreshable
    async def show_tabs() -> None:
        counts = await count_decisions(visit, site_id)
        views = [
            (f"{label} ({format_count(counts[name])})", f"{address}{name}") for name, label in STATES.items()
        ]
        add_view_links(views, current=f"{address}{state}", label="States of ads")

    async def update() -> None:
        await show_tabs.refresh()

    await show_tabs()
    await ApprovalInbox(visit, site_id, state, on_change=update).show()
