"""The admin that `adloom up` makes on the first start."""

from datetime import datetime

from adloom.core.actor import Role
from adloom.core.ids import IdSource, UserId
from adloom.identity import store
from adloom.identity.model import User
from adloom.runtime.auth import Passwords
from adloom.runtime.postgres import Pool


async def ensure_first_admin(pool: Pool, email: str, password: str, now: datetime, ids: IdSource) -> bool:
    """Make an admin where there is none; return whether it did. Two calls at once make one."""
    async with pool.acquire() as connection:
        if await store.has_admin(connection):
            return False
    password_hash = await Passwords().hash(password)
    user = User(id=UserId(ids.new()), role=Role.ADMIN, account_id=None, disabled_at=None)
    async with pool.acquire() as connection:
        return await store.insert_user(connection, user, email=email, password_hash=password_hash, now=now)
