"""Names of what the keys of statistics mention, also of placements that were removed."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from adloom.runtime.postgres import Connection
from adloom.stats.model import StatsRow

# Not by the declarations of nouns: the worker reads names too, and loads none of them.
NAMES: Final = """
    SELECT public_id, title AS name FROM banners WHERE public_id = ANY ($1::uuid[])
    UNION ALL SELECT public_id, name FROM campaigns WHERE public_id = ANY ($1::uuid[])
    UNION ALL SELECT public_id, name FROM advertisers WHERE public_id = ANY ($1::uuid[])
    UNION ALL SELECT public_id, name FROM publishers WHERE public_id = ANY ($1::uuid[])
    UNION ALL SELECT public_id, name FROM sites WHERE public_id = ANY ($1::uuid[])
    UNION ALL SELECT ever.public_id, coalesce(placement.label, ever.slug)
      FROM placements_ever AS ever LEFT JOIN placements AS placement ON placement.id = ever.id
     WHERE ever.public_id = ANY ($1::uuid[])
"""


async def read_key_names(connection: Connection, rows: Iterable[StatsRow]) -> dict[UUID, str]:
    """Return the names of the ids in the keys of rows."""
    wanted = sorted({part for row in rows for part in row.key if isinstance(part, UUID)})
    if not wanted:
        return {}
    return {row["public_id"]: row["name"] for row in await connection.fetch(NAMES, wanted)}
