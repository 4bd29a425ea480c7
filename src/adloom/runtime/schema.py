"""Brings a database's schema up to date, without loading the tools for that where nothing is to be done."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from importlib.resources import files
from urllib.parse import parse_qs, urlsplit

import asyncpg

from adloom.core.errors import CommandError, describe_error
from adloom.runtime.failover.primary import connect
from adloom.runtime.postgres import POSTGRES_AWAY, Connection

CURRENT_REVISION = "SELECT version_num FROM alembic_version"


class DatabaseError(CommandError):
    """The database cannot be used, or brought up to date; the message names it and says why."""


@contextmanager
def raise_if_unusable(database_url: str) -> Generator[None]:
    """Raise DatabaseError where PostgreSQL does not answer or refuses."""
    try:
        yield
    except POSTGRES_AWAY as error:
        raise DatabaseError(
            f"{describe_database(database_url)} cannot be used: {describe_error(error)}."
        ) from error


async def migrate_here(database_url: str) -> None:
    """Apply what is missing, in this process."""
    # Loaded only now: SQLAlchemy takes longer than all the rest of a start.
    from adloom.runtime import migrate  # noqa: PLC0415

    await migrate.upgrade(database_url)


def say_nothing(_line: str) -> None:
    """Stand in where nobody reads what is said."""


async def upgrade_schema(
    database_url: str,
    migrate: Callable[[str], Awaitable[None]] = migrate_here,
    *,
    say: Callable[[str], object] = say_nothing,
) -> str:
    """Bring a database to the newest schema by `migrate`, if it has another one; return its revision."""
    with raise_if_unusable(database_url):
        return await _upgrade(database_url, migrate, say)


def read_newest_revision() -> str:
    """Return the newest migration by its file name; a test keeps the names right."""
    return list_revisions()[-1]


def list_revisions() -> list[str]:
    """Return all migrations in their order."""
    names = (entry.name for entry in (files("adloom") / "migrations" / "versions").iterdir())
    return sorted(name.partition("_")[0] for name in names if name.endswith(".py"))


def describe_database(database_url: str) -> str:
    """Name a database without its password."""
    parts = urlsplit(database_url)
    [socket_folder] = parse_qs(parts.query).get("host", [""])[:1]
    hosts = [
        host if ":" in host else f"{host}:5432" for host in parts.netloc.rpartition("@")[2].split(",") if host
    ]
    place = ", ".join(hosts) or socket_folder
    return f"The database {parts.path.removeprefix('/')!r} at {place}"


async def read_current_revision(connection: Connection) -> str | None:
    """Return the revision of a database; None if it is empty."""
    try:
        return await connection.fetchval(CURRENT_REVISION)
    except asyncpg.UndefinedTableError:
        return None


async def _upgrade(
    database_url: str, migrate: Callable[[str], Awaitable[None]], say: Callable[[str], object]
) -> str:
    *_, newest = known = list_revisions()
    connection = await connect(database_url)
    try:
        current = await read_current_revision(connection)
    finally:
        await connection.close()
    if current is not None and current > newest:
        raise DatabaseError(
            f"{describe_database(database_url)} has the schema {current} of a newer Adloom; this one knows {newest}."
            " Start the newer version, or restore a backup from before its upgrade."
        )
    if current != newest:
        if current is not None:  # The first start has nothing to upgrade.
            count = sum(revision > current for revision in known)
            say(f"The schema goes from {current} to {newest}: {count} migration{'s' * (count > 1)}.")
        await migrate(database_url)
    return newest
