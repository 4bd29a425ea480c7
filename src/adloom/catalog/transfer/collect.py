"""An export: all that somebody may see, as items of a document."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adloom.catalog.transfer import table
from adloom.catalog.transfer.kind import Kind, kinds_of
from adloom.core.actor import Actor
from adloom.resource.changes import Catalog

Lists = Mapping[Kind, Sequence[Mapping[str, Any]]]


async def collected(catalog: Catalog, actor: Actor) -> Lists:
    """Read everything in one moment of the catalog."""
    lists: dict[Kind, list[msgspec.Struct]] = {}
    async with (
        catalog.read() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        for kind in kinds_of(actor.role):
            lists[kind] = await table.everything(connection, kind.table, actor.account_id)
    return {kind: await asyncio.to_thread(_items, kind, things) for kind, things in lists.items()}


def _items(kind: Kind, things: Sequence[msgspec.Struct]) -> list[Mapping[str, Any]]:
    """Say what the API's answers say, as far as an import takes it."""
    aliases = kind.aliases.values()
    items: list[Mapping[str, Any]] = []
    for thing in things:
        answer = kind.answer.model_validate(thing).model_dump(mode="json")
        items.append({alias: answer[alias] for alias in aliases})
    return items
