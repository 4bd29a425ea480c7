"""What people call rows: names by public id, of all nouns that have a name."""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from adloom.runtime.postgres import Connection

# The column with the name, by table; declarations fill it.
NAME_COLUMNS: Final[dict[str, str]] = {}
UUID_LENGTH: Final = 36


async def read_names(connection: Connection, ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """Return the names of rows of any noun; an id that is not there has none.

    It does not check their owners: pass only ids that the client knows already.
    """
    wanted = sorted({one for one in ids if one is not None})
    if not wanted:
        return {}
    parts = (
        f"SELECT public_id, {column} AS name FROM {table} WHERE public_id = ANY ($1::uuid[])"  # noqa: S608 - our own names
        for table, column in NAME_COLUMNS.items()
    )
    rows = await connection.fetch(" UNION ALL ".join(parts), wanted)
    return {row["public_id"]: row["name"] for row in rows}


def list_ids(value: Any) -> list[UUID]:  # noqa: ANN401 - whatever an entry of the history has
    """Find ids in a value, and in what it is made of; an id of several parts has slashes between them."""
    if isinstance(value, UUID):
        return [value]
    if isinstance(value, str):
        return [found for part in value.split("/") if (found := _parse(part)) is not None]
    if isinstance(value, dict):
        return [one for part in value.values() for one in list_ids(part)]  # pyright: ignore[reportUnknownVariableType]  of JSON
    if isinstance(value, list):
        return [one for part in value for one in list_ids(part)]  # pyright: ignore[reportUnknownVariableType]  of JSON
    return []


def _parse(text: str) -> UUID | None:
    if len(text) != UUID_LENGTH:
        return None
    try:
        return UUID(text)
    except ValueError:
        return None
