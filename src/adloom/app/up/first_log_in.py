"""The first admin of an installation: a password for one log-in, which is then forgotten.

It is printed on a terminal only. Elsewhere the output becomes a journal that others read, so it says where the password
is kept. Programs read that output too: it has no word that looks like a password there.
"""

import asyncio
import sys
from datetime import datetime
from typing import Final

import msgspec

from adloom.app.progress import StepProgress
from adloom.core.ids import IdSource
from adloom.identity.first_admin import create_welcome, ensure_first_admin, has_first_password
from adloom.runtime.installation import DataDirectory, make_secrets
from adloom.runtime.postgres import POSTGRES_AWAY, Pool, open_pool

ADMIN_EMAIL: Final = "admin@adloom.local"
WELCOME_PATH: Final = "/console/welcome"
POLL_SECONDS: Final = 300.0  # Each look is a connection to PostgreSQL; the password is worth nothing by then.


class FirstLogIn(msgspec.Struct, frozen=True, kw_only=True):
    """How the first admin gets in; `password` is None where it was replaced, `link` where none was made."""

    password: str | None
    link: str | None = None
    is_terminal: bool = False

    def __repr__(self) -> str:
        """Show nothing."""
        return "FirstLogIn(…)"


async def prepare_first_log_in(
    pool: Pool, directory: DataDirectory, *, url: str, now: datetime, ids: IdSource
) -> FirstLogIn:
    """Make the first admin where there is none, and forget a first password that was replaced."""
    secrets = directory.read_secrets()
    assert secrets is not None, "made before anything starts"
    password = secrets.admin_password or make_secrets().admin_password
    is_new = await ensure_first_admin(pool, ADMIN_EMAIL, password, now, ids)
    if is_new and password != secrets.admin_password:
        directory.write_secrets(msgspec.structs.replace(secrets, admin_password=password))
    if not await has_first_password(pool, ADMIN_EMAIL):
        _forget(directory)
        return FirstLogIn(password=None)
    is_terminal = sys.stdout.isatty()
    if not (is_new and is_terminal):
        return FirstLogIn(password=password, is_terminal=is_terminal)
    token = await create_welcome(pool, ADMIN_EMAIL, now=now)
    return FirstLogIn(password=password, link=f"{url}{WELCOME_PATH}?token={token}", is_terminal=True)


def print_first_log_in(found: FirstLogIn, directory: DataDirectory, progress: StepProgress) -> None:
    progress.print_line(f"  email: {ADMIN_EMAIL}")
    if found.password is None:
        progress.print_line("  You log in with what you chose at the first log-in.")
    elif found.link is not None:
        progress.print_line(f"  password: {found.password}   for the first log-in, which asks for your own")
        progress.print_line()
        progress.print_line("  Open this link to be logged in without it; it works once, within 24 hours:")
        progress.print_line(f"  {found.link}")
    else:
        progress.print_line(
            f"  The first log-in is in {directory.secrets_path}; it asks you to choose your own."
        )


async def forget_first_password(database_url: str, directory: DataDirectory) -> None:
    """Wait until the first password is replaced, and remove it from the file of secrets."""
    while (secrets := directory.read_secrets()) is not None and secrets.admin_password:
        await asyncio.sleep(POLL_SECONDS)
        try:
            async with open_pool(database_url, size_max=1) as pool:
                if not await has_first_password(pool, ADMIN_EMAIL):
                    _forget(directory)
        except POSTGRES_AWAY:
            continue


def _forget(directory: DataDirectory) -> None:
    secrets = directory.read_secrets()
    if secrets is not None and secrets.admin_password:
        directory.write_secrets(msgspec.structs.replace(secrets, admin_password=""))
