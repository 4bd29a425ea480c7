"""Which version the catalog is at."""

from adloom.runtime.postgres import Connection

CURRENT_VERSION = "SELECT version FROM catalog_version"


async def current_version(connection: Connection) -> int:
    """Tell the version of the last committed write."""
    return await connection.fetchval(CURRENT_VERSION)
