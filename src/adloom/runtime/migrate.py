"""Bring a database to the newest schema; as a program, that of `DATABASE_URL`, when the start gate is open."""

import asyncio
import os
import sys
from importlib.resources import files

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from adloom.core.errors import describe_error
from adloom.runtime.failover.primary import connect
from adloom.runtime.postgres import POSTGRES_AWAY
from adloom.runtime.supervisor.start_gate import wait_for_start

# Two processes that migrate at once take turns; the second finds nothing to do.
MIGRATION_LOCK_KEY = 0xAD100


def _make_config(connection: Connection, *, is_empty: bool) -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("adloom") / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    config.attributes["is_empty"] = is_empty
    return config


async def upgrade(database_url: str) -> None:
    """Apply what is missing: to an empty database in one transaction, else in one for each migration."""
    # Connected by the driver itself: it knows every part of an address, such as those of TLS.
    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=lambda: connect(database_url), poolclass=NullPool
    )
    async with engine.connect() as connection:
        await connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK_KEY})
        await connection.commit()
        is_empty = await connection.scalar(text("SELECT to_regclass('alembic_version') IS NULL"))
        await connection.commit()
        await connection.run_sync(lambda sync: command.upgrade(_make_config(sync, is_empty=is_empty), "head"))
        await connection.commit()


async def _upgrade_when_told() -> None:
    await wait_for_start(os.environ)
    try:
        await upgrade(os.environ["DATABASE_URL"])
    except POSTGRES_AWAY as error:
        sys.exit(describe_error(error))


def main() -> None:
    asyncio.run(_upgrade_when_told())


if __name__ == "__main__":
    main()
