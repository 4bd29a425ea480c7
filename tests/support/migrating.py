"""Databases as an older version left them."""

from importlib.resources import files

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool


async def go_back_to(database_url: str, revision: str) -> None:
    """Empty the database, and migrate it no further than to a revision."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("DROP SCHEMA public, events, auction, sync CASCADE; CREATE SCHEMA public")
    await connection.close()
    engine = create_async_engine(
        database_url.replace("postgresql://", "postgresql+asyncpg://"), poolclass=NullPool
    )

    def upgrade(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(files("adloom") / "migrations"))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

    async with engine.connect() as migrating:
        await migrating.run_sync(upgrade)
        await migrating.commit()
