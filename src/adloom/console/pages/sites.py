"""The pages of sites: their placements and their settings."""

from typing import Final

from adloom.console.client import Json
from adloom.console.components.forms import checks
from adloom.console.components.forms.fields import owner_field
from adloom.console.components.forms.form import Form
from adloom.console.components.table import Column
from adloom.console.page import PageVisit
from adloom.console.pages.placements import PLACEMENTS
from adloom.console.resource_pages import ResourcePages
from adloom.console.shell import PUBLISHER_SIDE
from adloom.core.actor import Role


async def _add_fields(visit: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    form.text("domain", "Domain", is_required=True, hint="Such as example.com.", check=checks.domain)
    form.text("name", "Name", check=checks.name)
    form.time_zone("timezone")
    if is_new and visit.role is not Role.PUBLISHER:
        await owner_field(form, visit.api, "publisher")


def _new_placement(site: Json) -> tuple[str, str]:
    publisher = f"&publisher={site['publisherId']}" if site["publisherId"] else ""
    return "New placement", f"{PLACEMENTS.new}?site={site['id']}{publisher}"


SITES: Final = ResourcePages(
    noun="site",
    icon="language",
    note="A domain whose pages have placements.",
    empty_note="A site is a domain. Advertisers can block domains, and a placement can name its site.",
    roles=PUBLISHER_SIDE,
    is_compact=True,
    columns=[
        Column("Domain", "domain", sort="domain"),
        Column("Name", "name", sort="name"),
        Column("Time zone", "timezone", is_wide_only=True),
    ],
    search="Search by domain or name",
    fields=_add_fields,
    defaults={"timezone": "UTC"},
    defaults_from_query={"publisherId": "publisher"},
    detail_note=lambda site: site["domain"],
    delete_note=(
        "Its placements stay and keep serving, but without a site: ads of advertisers that block this domain "
        "can then appear there. This cannot be undone."
    ),
    is_restorable=False,
    add=_new_placement,
    tabs={"placements": PLACEMENTS.tab_of("siteId")},
).register()
