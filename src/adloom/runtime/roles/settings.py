"""Settings of a worker that shares its actors with others, and of what it does itself."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from adloom.core.setting import (
    Secret,
    SecretValueError,
    SettingValueError,
    Variable,
    parse_url,
    parse_within,
)
from adloom.runtime.roles.nats_address import parse_address

REPLICAS_MAX: Final = 5
_parse_one_url: Final = parse_url("nats", "tls")


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
