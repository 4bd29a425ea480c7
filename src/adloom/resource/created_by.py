"""Who has made a thing: the user behind a write, where a user with a password is behind it."""

from uuid import UUID

from adloom.core.ids import UserId
from adloom.resource.changes import CatalogWrite

USER = "SELECT public_id FROM users WHERE public_id = $1"


async def find_creator(write: CatalogWrite) -> UserId | None:
    """Name the user; machines, the command line and parts of the system are none."""
    try:
        subject = UUID(write.author.subject)
    except ValueError:
        return None
    found: UUID | None = await write.connection.fetchval(USER, subject)
    return None if found is None else UserId(found)
