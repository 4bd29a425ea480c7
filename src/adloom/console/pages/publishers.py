"""The pages of publishers: their sites, their placements and their settings."""

from typing import Final

from adloom.console.components.forms.form import Form
from adloom.console.components.layout import facts
from adloom.console.components.status import build_account_badge
from adloom.console.components.table import Column
from adloom.console.page import PageVisit
from adloom.console.pages.placements import PLACEMENTS
from adloom.console.pages.sites.pages import SITES
from adloom.console.pages.statement import show_statement
from adloom.console.resource_pages import ResourcePages, Tab
from adloom.console.shell import PUBLISHER_SIDE


async def _add_fields(_: PageVisit, form: Form, is_new: bool) -> None:  # noqa: FBT001 - as its type says
    form.name("name", "Name")
    form.integer(
        "revenueSharePercent",
        "Its share of what is charged, in percent",
        hint="It counts from the day on which you set it. Days before keep the share that they had.",
    )
    if not is_new:
        facts([("Account id", form.initial("id"))])


PUBLISHERS: Final = ResourcePages(
    noun="publisher",
    icon="groups",
    note="A publisher shows ads. It is an account that owns sites and placements.",
    empty_note="Sites and placements can be your own. Create a publisher for the pages of another company.",
    roles=PUBLISHER_SIDE,
    is_admins_only=True,
    is_compact=True,
    columns=[Column("Name", "name", sort="name"), Column("Status", build_account_badge)],
    search="Search by name",
    fields=_add_fields,
    badge=build_account_badge,
    delete_note=(
        "Its people and keys are refused at once, and its placements are closed within two seconds. "
        "Offers that are already out still count. "
        "You can undo this: everything it owns is then back as it was."
    ),
    add=lambda publisher: ("New placement", f"{PLACEMENTS.new}?publisher={publisher['id']}"),
    tabs={
        "placements": PLACEMENTS.make_tab("publisherId"),
        "sites": SITES.make_tab("publisherId"),
        "statement": Tab("Statement", show_statement),
    },
    last_column=("Created", "createdAt"),
).register()
