"""SQL of the console's log-ins."""

from datetime import datetime

from adloom.core.actor import Role
from adloom.core.ids import UserId
from adloom.identity.console_session import ConsoleSession
from adloom.identity.model import User
from adloom.runtime.postgres import Connection, Record

INSERT = """
    INSERT INTO console_sessions (token_hash, user_id, began_at, seen_at, expires_at)
    SELECT $1, id, $3, $3, $4 FROM users WHERE public_id = $2
"""
FIND = """
    SELECT account.public_id AS id, account.email, account.role, account.account_id, account.disabled_at,
           session.seen_at, session.expires_at
      FROM console_sessions AS session JOIN users AS account ON account.id = session.user_id
     WHERE session.token_hash = $1
"""
MARK_SEEN = "UPDATE console_sessions SET seen_at = $2 WHERE token_hash = $1 AND seen_at < $2"
END = "DELETE FROM console_sessions WHERE token_hash = $1"
END_ALL_BUT = """
    DELETE FROM console_sessions
     WHERE user_id = (SELECT id FROM users WHERE public_id = $1) AND token_hash IS DISTINCT FROM $2
"""
DELETE_EXPIRED = "DELETE FROM console_sessions WHERE expires_at <= $1"

INSERT_WELCOME = """
    INSERT INTO console_welcomes (token_hash, user_id, expires_at)
    SELECT $1, id, $3 FROM users WHERE lower(email) = lower($2)
"""
# Deleted as it is used, so that it cannot be used twice.
TAKE_WELCOME = """
    DELETE FROM console_welcomes AS welcome USING users AS account
     WHERE welcome.token_hash = $1 AND account.id = welcome.user_id
    RETURNING account.public_id AS id, account.role, account.account_id, account.disabled_at, welcome.expires_at
"""


async def insert(
    connection: Connection, token_hash: bytes, user_id: UserId, *, now: datetime, expires_at: datetime
) -> None:
    await connection.execute(INSERT, token_hash, user_id, now, expires_at)


async def find(connection: Connection, token_hash: bytes) -> ConsoleSession | None:
    """Find a log-in, whether it is still valid or not."""
    row = await connection.fetchrow(FIND, token_hash)
    if row is None:
        return None
    return ConsoleSession(
        user=_user(row), email=row["email"], seen_at=row["seen_at"], expires_at=row["expires_at"]
    )


async def mark_seen(connection: Connection, token_hash: bytes, now: datetime) -> None:
    await connection.execute(MARK_SEEN, token_hash, now)


async def end(connection: Connection, token_hash: bytes) -> None:
    await connection.execute(END, token_hash)


async def end_all(connection: Connection, user_id: UserId, *, but: bytes | None = None) -> None:
    """End the log-ins of a user, all or all but one."""
    await connection.execute(END_ALL_BUT, user_id, but)


async def delete_expired(connection: Connection, now: datetime) -> None:
    """Delete log-ins that are too old."""
    await connection.execute(DELETE_EXPIRED, now)


async def insert_welcome(connection: Connection, token_hash: bytes, email: str, expires_at: datetime) -> None:
    """Add a link that logs a user in once."""
    await connection.execute(INSERT_WELCOME, token_hash, email, expires_at)


async def take_welcome(connection: Connection, token_hash: bytes, now: datetime) -> User | None:
    """Use up a link and return its user; None where it is unknown, used or too old."""
    row = await connection.fetchrow(TAKE_WELCOME, token_hash)
    return _user(row) if row is not None and now < row["expires_at"] else None


def _user(row: Record) -> User:
    return User(
        id=row["id"], role=Role(row["role"]), account_id=row["account_id"], disabled_at=row["disabled_at"]
    )
