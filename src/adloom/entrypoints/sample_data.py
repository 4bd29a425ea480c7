"""Something to look at on the first start: the sample, loaded over the admin API."""

import asyncio
from datetime import datetime, timedelta

import asyncpg

from adloom.catalog.version import current_version
from adloom.core.actor import Actor, Role
from adloom.runtime.auth import issue_access_token
from adloom.runtime.postgres import CONNECT_SECONDS_MAX
from adloom.runtime.processes.child import StartError
from adloom.sample.load import AdminClient, load_sample

SUBJECT = "adloom-sample"
TOKEN_LIFETIME = timedelta(minutes=5)


async def is_catalog_untouched(database_url: str) -> bool:
    """Tell whether there is room for a sample: it is loaded once, and never into what somebody has made."""
    connection = await asyncpg.connect(database_url, timeout=CONNECT_SECONDS_MAX)
    try:
        # It is raised by every write.
        return await current_version(connection) == 0
    finally:
        await connection.close()


async def fill_with_sample(control_url: str, jwt_secret: str, *, delivery_url: str, now: datetime) -> None:
    """Load the sample as an admin."""
    actor = Actor(subject=SUBJECT, role=Role.ADMIN)
    token = issue_access_token(jwt_secret, actor, now=now, lifetime=TOKEN_LIFETIME)
    try:
        await asyncio.to_thread(load_sample, AdminClient(control_url, token), delivery_url=delivery_url)
    except OSError as error:
        raise StartError(f"The sample cannot be loaded: {error}. Start without it: --empty.") from error
