"""PostgreSQL and Valkey with TLS and with passwords that are changed while connections are open."""

import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import asyncpg
import pytest
from redis.exceptions import ConnectionError as ValkeyConnectionError

from adloom.runtime import migrate
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.valkey import Valkey, open_valkey
from tests.support.certificates import TlsFiles, make_tls_files, speaking_tls

ROLE = "rotating"  # `tests/support/services.py` asks it for a password.


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    return make_tls_files(tmp_path / "tls")


@pytest.fixture
def stranger(tmp_path: Path) -> TlsFiles:
    return make_tls_files(tmp_path / "stranger", name="somebody else")


@pytest.fixture
async def role(pool: Pool) -> AsyncIterator[str]:
    await pool.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'the first one'")
    yield ROLE
    await pool.execute(f"DROP ROLE {ROLE}")


def replace_place(url: str, *, user: str, port: int | None = None, query: str = "") -> str:
    parts = urlsplit(url)
    place = f"{user}127.0.0.1:{port or parts.port}"
    return parts._replace(netloc=place, query=query).geturl()


async def test_postgresql_is_reached_by_tls_and_only_if_its_certificate_is_right(
    database_url: str, files: TlsFiles, stranger: TlsFiles
) -> None:
    user = f"{urlsplit(database_url).netloc.rpartition('@')[0]}@"
    async with speaking_tls(files, urlsplit(database_url).port or 0, is_postgres=True) as port:

        def name(ca: Path) -> str:
            return replace_place(
                database_url, user=user, port=port, query=f"sslmode=verify-full&sslrootcert={ca}"
            )

        async with open_pool(name(files.authority), size_max=1) as pool:
            assert await pool.fetchval("SELECT 7") == 7
        await migrate.upgrade(name(files.authority))
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncpg.connect(name(stranger.authority))
        with pytest.raises((OSError, asyncpg.PostgresError)):
            await asyncpg.connect(replace_place(database_url, user=user, port=port, query="sslmode=disable"))


async def test_the_password_of_postgresql_is_changed_without_a_stop(
    database_url: str, pool: Pool, role: str, tmp_path: Path
) -> None:
    passwords = tmp_path / "pgpass"
    passwords.touch(mode=0o600)
    passwords.write_text("*:*:*:*:the first one\n")
    url = replace_place(database_url, user=f"{role}@", query=f"passfile={passwords}")

    async with open_pool(url, size_max=1) as used:
        first = await used.fetchval("SELECT current_user")
        await pool.execute(f"ALTER ROLE {role} PASSWORD 'the second one'")
        passwords.write_text("*:*:*:*:the second one\n")
        still = await used.fetchval("SELECT 1")
        await used.expire_connections()
        second = await used.fetchval("SELECT current_user")

    assert (first, still, second) == (role, 1, role)


async def test_valkey_is_reached_by_tls_and_only_if_its_certificate_is_right(
    redis_url: str, files: TlsFiles, stranger: TlsFiles
) -> None:
    user = f"{urlsplit(redis_url).netloc.rpartition('@')[0]}@"
    async with speaking_tls(files, urlsplit(redis_url).port or 0) as port:

        def name(ca: Path, scheme: str = "rediss") -> str:
            url = replace_place(redis_url, user=user, port=port, query=f"ssl_ca_certs={ca}")
            return url.replace("redis", scheme, 1)

        for scheme in ("rediss", "valkeys"):
            async with (
                open_valkey(name(files.authority, scheme)) as valkey,
                aclosing(DedicatedConnection(valkey)) as line,
            ):
                assert await valkey.ping()
                assert await line.execute_command("ECHO", large := b"0123456789" * 10_000) == large
                assert await line.execute_command("ECHO", "again") == b"again"
        async with open_valkey(name(stranger.authority)) as valkey:
            with pytest.raises(ValkeyConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
                await valkey.ping()


async def test_the_password_of_valkey_is_changed_without_a_stop(
    redis_url: str, valkey: Valkey, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("the first one\n")
    await valkey.execute_command("ACL", "SETUSER", ROLE, "on", ">the first one", "~*", "+@all")
    try:
        url = replace_place(redis_url, user=f"{ROLE}@", query=f"password_file={password}")
        async with open_valkey(url) as used:
            first = cast("object", await used.execute_command("ACL", "WHOAMI"))
            # Both work for a while: nothing is refused, whichever a process has read.
            await valkey.execute_command("ACL", "SETUSER", ROLE, ">the second one")
            password.write_text("the second one\n")
            await valkey.execute_command("ACL", "SETUSER", ROLE, "<the first one")
            await used.connection_pool.disconnect()
            second = cast("object", await used.execute_command("ACL", "WHOAMI"))
    finally:
        await valkey.execute_command("ACL", "DELUSER", ROLE)

    assert first == second == ROLE.encode()
