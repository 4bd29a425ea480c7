"""`adloom token`: prints an access token; `adloom token list` and `revoke` take it back."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from uuid import UUID

import typer

from adloom.cli.options import GROUP, DataDir, resolve_data_directory, resolve_database_url
from adloom.core.caller import ACCOUNT_ROLES, COMMAND_LINE, Caller, Role

if TYPE_CHECKING:
    from adloom.runtime.postgres import Connection

T = TypeVar("T")

app = typer.Typer(name="token", **GROUP)

HOURS_MAX = 24 * 366
# Without a database the token is written down when it is first used.
NOTE_SECONDS_MAX = 2.0


@app.callback(invoke_without_command=True)
def token(
    context: typer.Context,
    *,
    role: Annotated[Role | None, typer.Option(help="What the token's holder may do.")] = None,
    account: Annotated[UUID | None, typer.Option(help="The advertiser or publisher.")] = None,
    data_dir: DataDir = None,
    hours: Annotated[float, typer.Option(min=0.01, max=HOURS_MAX, help="How long it is valid.")] = 24,
) -> None:
    """Print an access token for an installation that runs or is stopped; list and revoke those that are out."""
    if context.invoked_subcommand is not None:
        return
    if role is None:
        raise typer.BadParameter("Say what the token's holder may do.", param_hint="--role")
    print_token(role, account=account, data_dir=data_dir, hours=hours)


def print_token(
    role: Role, *, account: UUID | None = None, data_dir: Path | None = None, hours: float = 24
) -> None:
    """Print a token, and for a new account its id on standard error."""
    from adloom.core.clock import SystemClock
    from adloom.core.ids import SystemIds
    from adloom.runtime.auth.access_token import issue_access_token
    from adloom.runtime.installation import find_jwt_secret
    from adloom.runtime.settings import read_token_settings

    if role not in ACCOUNT_ROLES and account is not None:
        raise typer.BadParameter(f"The role {role.value} acts for no account.", param_hint="--account")
    if role in ACCOUNT_ROLES and account is None:
        account = SystemIds().make()
        typer.echo(f"The token is for a new {role.value}, account {account}.", err=True)
    directory = resolve_data_directory(data_dir)
    secret = find_jwt_secret(os.environ, directory)
    if not os.environ.get("JWT_SECRET") and directory.read_holder_pid() is None:
        typer.echo(
            f"The token is for the installation in {directory.path}, which does not run now.", err=True
        )
    settings = read_token_settings(os.environ)
    signed = issue_access_token(
        secret,
        Caller(subject=COMMAND_LINE, role=role, account_id=account),
        now=SystemClock().now(),
        lifetime=timedelta(hours=hours),
        tokens=settings,
    )
    typer.echo(signed)
    _note(signed, secret, data_dir)


@app.command(name="list")
def list_tokens(*, data_dir: DataDir = None) -> None:
    """Show the tokens that are valid, with their last use."""
    from adloom.core.clock import SystemClock
    from adloom.identity.issued_tokens import list_valid
    from adloom.runtime.postgres import Connection

    async def read(connection: Connection) -> None:
        found = await list_valid(connection, SystemClock().now())
        for one in found:
            used = "never used" if one.last_used_at is None else f"used {one.last_used_at:%Y-%m-%d %H:%M}"
            whose = one.role.value if one.account_id is None else f"{one.role.value} {one.account_id}"
            typer.echo(f"{one.id}  until {one.expires_at:%Y-%m-%d %H:%M} UTC  {used}  {whose}")
        if not found:
            typer.echo("No token is valid that was noted here.")

    _run_in_database(data_dir, read)


@app.command()
def revoke(
    token_id: Annotated[UUID, typer.Argument(help="As `adloom token list` shows it.")],
    *,
    data_dir: DataDir = None,
) -> None:
    """Revoke a token, at once and for good."""
    from adloom.core.clock import SystemClock
    from adloom.identity.issued_tokens import revoke_issued
    from adloom.identity.security_record import ACCESS_TOKEN, record_event
    from adloom.resource.audit.entry import Author
    from adloom.runtime.postgres import Connection

    now = SystemClock().now()

    async def end(connection: Connection) -> bool:
        async with connection.transaction():
            is_revoked = await revoke_issued(connection, token_id, now)
            if is_revoked:
                author = Author(subject=COMMAND_LINE, role=Role.ADMIN.value)
                await record_event(connection, author, "revoke", ACCESS_TOKEN, token_id, at=now)
        return is_revoked

    if not _run_in_database(data_dir, end):
        typer.echo("adloom: There is no such token, or it has ended already.", err=True)
        raise typer.Exit(1)
    typer.echo(f"Token {token_id} is revoked.")


def _run_in_database(data_dir: Path | None, work: "Callable[[Connection], Awaitable[T]]") -> T:
    from adloom.runtime.postgres import open_pool
    from adloom.runtime.schema import raise_if_unusable

    database_url = resolve_database_url(data_dir)

    async def run() -> T:
        async with open_pool(database_url, size_max=1) as pool, pool.acquire() as connection:
            return await work(connection)

    with raise_if_unusable(database_url):
        return asyncio.run(run())


def _note(signed: str, secret: str, data_dir: Path | None) -> None:
    """Write a token down where the database runs, so that it is listed before its first use."""
    from adloom.runtime.installation import InstallationError

    directory = resolve_data_directory(data_dir)
    if not os.environ.get("DATABASE_URL") and directory.read_holder_pid() is None:
        return
    import asyncpg

    from adloom.core.clock import SystemClock
    from adloom.identity.issued_tokens import insert_issued
    from adloom.runtime.auth.access_token import verify_access_token
    from adloom.runtime.postgres import Connection
    from adloom.runtime.schema import DatabaseError
    from adloom.runtime.settings import read_token_settings

    now = SystemClock().now()
    issued = verify_access_token(secret, signed, now=now, tokens=read_token_settings(os.environ))

    async def write(connection: Connection) -> None:
        async with asyncio.timeout(NOTE_SECONDS_MAX):
            await insert_issued(connection, issued, now=now, used_at=None)

    try:
        _run_in_database(data_dir, write)
    except (DatabaseError, asyncpg.PostgresError, InstallationError):
        return
