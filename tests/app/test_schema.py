"""The schema is brought up to date, and no more is loaded for that than needed."""

from importlib.resources import files
from urllib.parse import urlsplit

import asyncpg
import pytest
from alembic.script import ScriptDirectory

from adloom.runtime import schema
from adloom.runtime.ports import free_port


def test_the_newest_migration_is_known_by_the_name_of_its_file() -> None:
    scripts = ScriptDirectory(str(files("adloom") / "migrations"))

    assert schema.newest_revision() == scripts.get_current_head()


async def test_an_empty_database_gets_the_newest_schema(database_url: str) -> None:
    empty = await an_empty_database(database_url)

    revision = await schema.upgrade_schema(empty)

    connection = await asyncpg.connect(empty)
    assert revision == await schema.current_revision(connection) == schema.newest_revision()
    await connection.close()


async def test_a_database_that_is_up_to_date_stays_as_it_is(database_url: str) -> None:
    assert await schema.upgrade_schema(database_url) == schema.newest_revision()


async def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    port = free_port()

    with pytest.raises(schema.DatabaseError, match=f"'ads' at 127.0.0.1:{port}") as raised:
        await schema.upgrade_schema(f"postgresql://ada:a-password@127.0.0.1:{port}/ads")

    assert "a-password" not in str(raised.value)


async def an_empty_database(database_url: str) -> str:
    """Empty the test's own database: the schema goes, the database stays."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("DROP SCHEMA public, events, auction, sync CASCADE; CREATE SCHEMA public")
    await connection.close()
    assert urlsplit(database_url).path
    return database_url
