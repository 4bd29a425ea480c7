"""Upgrading the schema of a database."""

import re
from importlib.resources import files
from urllib.parse import urlsplit

import asyncpg
import pytest
from alembic.script import ScriptDirectory

from adloom.app.up.schema_upgrade import prepare_upgrade
from adloom.runtime import schema
from adloom.runtime.ports import find_port
from tests.support.migrating import go_back_to

# Old processes go on with a new schema while others are replaced.
ADDING_SINCE = "0032"
TAKING = re.compile(r"\bDROP (TABLE|COLUMN|TYPE|SCHEMA)\b|\bRENAME\b|\bSET NOT NULL\b", re.IGNORECASE)
# Migrations that may, for a reason; their version says what has to be stopped.
TAKEN = set[str]()


def test_the_newest_revision_is_that_of_the_migration_scripts() -> None:
    scripts = ScriptDirectory(str(files("adloom") / "migrations"))

    assert schema.read_newest_revision() == scripts.get_current_head()


def test_migrations_take_nothing_away_that_the_version_before_uses() -> None:
    folder = files("adloom") / "migrations" / "versions"
    texts = {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".py") and entry.name >= ADDING_SINCE
    }

    assert len(texts) > 10
    assert {name for name, text in texts.items() if TAKING.search(text)} == TAKEN


async def test_an_empty_database_gets_the_newest_schema(database_url: str) -> None:
    empty = await empty_database(database_url)

    revision = await schema.upgrade_schema(empty)

    connection = await asyncpg.connect(empty)
    assert revision == await schema.read_current_revision(connection) == schema.read_newest_revision()
    await connection.close()


async def test_a_first_upgrade_that_breaks_off_leaves_an_empty_database(database_url: str) -> None:
    empty = await empty_database(database_url)
    connection = await asyncpg.connect(empty)
    await connection.execute("CREATE TABLE saved_reports (in_the_way_of text)")

    async with prepare_upgrade(empty, is_expected=True) as upgrade:
        with pytest.raises(schema.DatabaseError, match='relation "saved_reports" already exists'):
            await schema.upgrade_schema(empty, upgrade)

    assert await schema.read_current_revision(connection) is None
    assert await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 1
    await connection.close()


async def test_an_upgrade_says_from_where_to_where_it_goes_and_once_it_is_done_nothing(
    database_url: str,
) -> None:
    newest = schema.read_newest_revision()
    await go_back_to(database_url, "0047")
    said: list[str] = []

    for _ in range(2):
        assert await schema.upgrade_schema(database_url, say=said.append) == newest

    [line] = said
    assert line == f"The schema goes from 0047 to {newest}: {int(newest) - 47} migrations."


async def test_a_first_upgrade_is_none_to_speak_of(database_url: str) -> None:
    said: list[str] = []

    await schema.upgrade_schema(await empty_database(database_url), say=said.append)

    assert not said


async def test_the_error_about_an_unreachable_database_has_no_password() -> None:
    port = find_port()

    with pytest.raises(schema.DatabaseError, match=f"'ads' at 127.0.0.1:{port}") as raised:
        await schema.upgrade_schema(f"postgresql://ada:a-password@127.0.0.1:{port}/ads")

    assert "a-password" not in str(raised.value)


async def test_the_error_about_an_unreachable_socket_names_its_folder() -> None:
    with pytest.raises(schema.DatabaseError, match=r"'ads' at /nowhere cannot be used"):
        await schema.upgrade_schema("postgresql://ada:a-password@/ads?host=/nowhere")


async def test_the_error_of_an_upgrade_in_a_process_of_its_own_says_why_and_has_no_password() -> None:
    url = "postgresql://ada:a-password@/ads?host=/nowhere"

    async with prepare_upgrade(url, is_expected=True) as upgrade:
        with pytest.raises(
            schema.DatabaseError, match=r"'ads' at /nowhere cannot be upgraded: .*No such file"
        ) as raised:
            await upgrade(url)

    assert "a-password" not in str(raised.value)


async def test_a_database_of_a_newer_version_is_refused_with_a_sentence(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("UPDATE alembic_version SET version_num = '9999'")
    await connection.close()

    with pytest.raises(schema.DatabaseError, match="has the schema 9999 of a newer Adloom; this one knows"):
        await schema.upgrade_schema(database_url)


async def empty_database(database_url: str) -> str:
    """Drop all schemas of the test's database; return its URL."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("DROP SCHEMA public, events, auction, sync CASCADE; CREATE SCHEMA public")
    await connection.close()
    assert urlsplit(database_url).path
    return database_url
