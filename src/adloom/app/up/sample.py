"""What `adloom up` knows of the sample; what is done to it is done by a process of its own, whose memory ends with it."""

import os
from typing import Final, Literal

from adloom.runtime.failover.primary import connect
from adloom.runtime.http.probe import format_url_host
from adloom.runtime.installation import DataDirectory, Installation
from adloom.runtime.supervisor.program import Start, make_our_program, run
from adloom.sample.content.catalog import MAGAZINE, SITE_BY_KEY
from adloom.sample.manifest import FILE_NAME, Manifest, State

FILL: Final = "fill"
GIVE: Final = "give"


async def run_on_sample(  # noqa: PLR0913 - who, what and where
    action: Literal["fill", "give"],
    directory: DataDirectory,
    installation: Installation,
    *,
    delivery_url: str,
    jwt_secret: str,
    start: Start,
) -> None:
    """Load the sample, or make its pages known; raises ProgramFailedError with the reason where that fails."""
    # Not the public address, which may be a proxy's that does not run yet.
    host = format_url_host(installation.control_host or installation.host)
    program = make_our_program(
        "sample-data",
        "adloom.app.sample_data",
        action,
        str(directory.path),
        f"http://{host}:{installation.control_port}",
        delivery_url,
        environment={**os.environ, "JWT_SECRET": jwt_secret},
    )
    await run(program, seconds_max=None, start=start)


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
