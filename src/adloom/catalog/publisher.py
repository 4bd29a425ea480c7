"""Publishers: admins manage them, and a publisher reads its own record."""

from datetime import datetime

from adloom.core.caller import Role
from adloom.core.ids import PublisherId
from adloom.resource.access import Owner
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.resource import Resource
from adloom.resource.shapes import Percent
from adloom.resource.soft_delete import SoftDeletable
from adloom.runtime.http.api.shapes import Name


class Publisher(SoftDeletable, frozen=True, kw_only=True):
    """An account that shows."""

    noun_name = "publisher"

    id: PublisherId
    name: Name
    revenue_share_percent: Percent = (
        100  # Of what is charged on its placements; it counts from the day it is set.
    )
    created_at: datetime


PLACEMENT_KEYS = """
    SELECT it.id FROM placements AS it JOIN publishers AS owner ON owner.id = it.publisher_id
     WHERE owner.public_id = $1
"""


async def _touch(write: CatalogWrite, before: Publisher, after: Publisher) -> None:
    """Its placements are closed with its deletion, and open when it is restored."""
    if before.deleted_at != after.deleted_at:
        await write.touch_all(IndexedNoun.PLACEMENT, PLACEMENT_KEYS, after.id)


publishers = Resource(
    struct=Publisher,
    name="publisher",
    path="/admin/publishers",
    tag="publishers",
    table_name="publishers",
    title="name",
    owner=Owner(role=Role.PUBLISHER, alias="publisherId", is_itself=True),
    docs={
        "answer": "A publisher; its id is the account of its tokens.",
        "list": "List publishers; one that asks sees itself.",
        "delete": "Delete a publisher: its tokens are refused and its placements closed, until it is restored.",
        "restore": "Bring a deleted publisher back, with all that it owns.",
    },
    search=("name",),
    sort=("name",),
    after_update=_touch,
    list_name="publishers",
)
