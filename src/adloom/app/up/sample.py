"""What `adloom up` knows of the sample; what is done to it is done by a process of its own, whose memory ends with it."""

from typing import Final

from adloom.runtime.failover.primary import connect
from adloom.runtime.installation import DataDirectory
from adloom.runtime.ports import format_url_host
from adloom.sample.content.catalog import MAGAZINE, SITE_BY_KEY
from adloom.sample.manifest import FILE_NAME, Manifest, State

FILL: Final = "fill"
GIVE: Final = "give"


async def is_catalog_untouched(database_url: str) -> bool:
    """Whether nothing was ever written: the sample is not loaded by itself beside other data."""
    connection = await connect(database_url)
    try:
        # It is raised by every write.
        return await connection.fetchval("SELECT version FROM catalog_version") == 0
    finally:
        await connection.close()


def read_manifest(directory: DataDirectory) -> Manifest | None:
    """Return what the sample has created; None if there is no sample."""
    return directory.read(FILE_NAME, Manifest)


def is_loaded(directory: DataDirectory) -> bool:
    """Whether the whole sample is loaded."""
    manifest = read_manifest(directory)
    return manifest is not None and manifest.state is State.THERE


def resolve_magazine(address: str, port: int, resolved: str) -> str:
    """Return ADLOOM_CRAWL_RESOLVE with the magazine, whose domain does not exist, at delivery's address."""
    ours = f"{SITE_BY_KEY[MAGAZINE].domain}={format_url_host(address)}:{port}"
    return f"{ours},{resolved}" if resolved else ours  # What the operator says wins: the last counts.
