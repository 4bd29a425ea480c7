"""The overview of a site: what its pages are about."""

from adloom.console.client import Json
from adloom.console.components.layout import notice
from adloom.console.page import PageVisit
from adloom.console.pages.sites.topics import show_topics
from adloom.console.resource_pages import Reload


async def show_overview(visit: PageVisit, site: Json, _: Reload) -> None:
    if site["isSuspended"]:
        notice(
            "No page of it gets a contextual ad. Switch this off in its settings.",
            kind="warn",
            title="Suspended",
        )
    show_topics(site, await visit.api.get(f"/admin/sites/{site['id']}/topics"))
