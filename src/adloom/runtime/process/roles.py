"""Settings of a worker that shares its actors with others, and of what it does itself."""

import ssl
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import msgspec

from adloom.core.setting import (
    Secret,
    SecretValueError,
    SettingValueError,
    Variable,
    parse_url,
    parse_within,
)

# Files, in the query of the address as those of PostgreSQL and Valkey are.
AUTHORITY, CERTIFICATE, KEY, PASSWORD_FILE = "ca", "cert", "key", "password_file"
KNOWN: Final = {AUTHORITY, CERTIFICATE, KEY, PASSWORD_FILE}
REPLICAS_MAX: Final = 5
_parse_one_url: Final = parse_url("nats", "tls")


class NatsAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Servers, and what to show them; credentials in a URL itself are left to the client."""

    urls: tuple[str, ...]
    user: str | None = None
    read_password: Callable[[], str] | None = None
    tls: ssl.SSLContext | None = None


def parse_address(text: str) -> NatsAddress:
    """Read addresses with commas between; the files that the first one names count for all."""
    parts = [urlsplit(url.strip()) for url in text.split(",")]
    query = {name: values[-1] for name, values in parse_qs(parts[0].query).items()}
    if unknown := sorted(query.keys() - KNOWN):
        raise SecretValueError(
            f"has {unknown[0]} behind the question mark; there may be {', '.join(sorted(KNOWN))}."
        )
    file = query.get(PASSWORD_FILE)
    if file is not None and not parts[0].username:
        raise SecretValueError("has a password_file and no user.")
    return NatsAddress(
        urls=tuple(_strip(one, has_file=file is not None) for one in parts),
        user=unquote(parts[0].username or "") if file is not None else None,
        read_password=None if file is None else lambda: read_password_file(Path(file)),
        tls=_make_context(query) if any(one.scheme == "tls" for one in parts) else None,
    )


def read_password_file(file: Path) -> str:
    """Read a password; it is read again for every connection, so that it can be changed without a stop."""
    return file.read_text(encoding="utf-8").strip()


def _strip(parts: SplitResult, *, has_file: bool) -> str:
    place = parts.netloc.rpartition("@")[2] if has_file else parts.netloc
    return parts._replace(netloc=place, query="").geturl()


def _make_context(query: dict[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=query.get(AUTHORITY))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if CERTIFICATE in query:
        context.load_cert_chain(query[CERTIFICATE], query.get(KEY))
    return context


class WorkerRole(StrEnum):
    """A part of a worker's work that may run on machines of its own."""

    ENTITY = "entity"  # Actors of the shards that it gets.
    SINGLETON = (
        "singleton"  # What runs once: delivery's reports, changes of catalog and pages, charges, the market.
    )
    PROJECTIONS = "projections"
    JOBS = "jobs"


ALL_ROLES: Final = tuple(WorkerRole)


def _parse_urls(text: str) -> Secret:
    for part in text.split(","):
        _parse_one_url(part.strip())
    try:
        address = parse_address(text)
        if address.read_password is not None:
            address.read_password()
    except OSError as error:  # Those of TLS, too.
        raise SecretValueError(f"names a file that cannot be used: {error}") from error
    return Secret(text)


def _parse_roles(text: str) -> tuple[WorkerRole, ...]:
    try:
        return tuple(WorkerRole(part.strip()) for part in text.split(","))
    except ValueError as error:
        raise SettingValueError(f"some of {', '.join(WorkerRole)}, with commas between") from error


class NatsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where NATS is, if actors run on several machines, and what this worker does."""

    url: Annotated[Secret | None, Variable("ADLOOM_NATS_URL", _parse_urls)] = None
    replicas: Annotated[int, Variable("ADLOOM_NATS_REPLICAS", parse_within(1, REPLICAS_MAX))] = 1
    roles: Annotated[tuple[WorkerRole, ...], Variable("ADLOOM_WORKER_ROLES", _parse_roles)] = ALL_ROLES
