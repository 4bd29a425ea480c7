"""PostgreSQL and Valkey of an installation: embedded where the environment names none."""

import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from adloom.core.setting import VALKEY_SCHEMES, SecretValueError, parse_url
from adloom.runtime.embedded.nats import NATS_QUESTION, EmbeddedNats
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.http.answering import POSTGRES_QUESTION, VALKEY_QUESTION, is_answering
from adloom.runtime.installation import DataDirectory, Installation, InstallationError, Secrets
from adloom.runtime.settings import add_redis_password
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.watch import Watched

# Below what systems hand out to outgoing connections, so that a server that is started again finds its port free.
PORT_FIRST = 21_000
PORT_COUNT = 10_000
# Together with the product's own processes this stays under the 10 s that a stop may take.
STOP_SECONDS_MAX = {"valkey": 0.8, "postgres": 1.8, "nats": 1.5}
QUESTIONS = {"postgres": POSTGRES_QUESTION, "valkey": VALKEY_QUESTION, "nats": NATS_QUESTION}


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """Where the servers are, and those of them that are ours to run."""

    database_url: str
    redis_url: str
    postgres: ChildSpec | None
    valkey: ChildSpec | None
    # Nowhere if it is not ours.
    postgres_place: Listening
    valkey_place: Listening
    # Only where several workers share the actors.
    nats: ChildSpec | None = None
    nats_url: str | None = None


def choose_first_port(data_directory: Path) -> int:
    """Return where to look for free ports, so that two installations seldom look in the same place."""
    return PORT_FIRST + zlib.crc32(bytes(data_directory)) % PORT_COUNT


def describe_servers(  # noqa: PLR0913 - what they differ in
    variables: Mapping[str, str],
    data_directory: Path,
    secrets: Secrets,
    *,
    postgres: Listening,
    valkey: Listening,
    nats_port: int | None = None,
    frozen_seconds: int = 0,
) -> Servers:
    """Describe the servers without starting them; silent for so long they are frozen, unless it is 0.

    NATS is one of them where it has a port and the environment names no other.
    """
    own_nats = (
        None
        if nats_port is None
        else EmbeddedNats(data_directory / "nats", port=nats_port, password=secrets.nats_password)
    )
    nats_url = variables.get("ADLOOM_NATS_URL")
    own_postgres = EmbeddedPostgres(
        data_directory / "postgres", listening=postgres, password=secrets.postgres_password
    )
    own_valkey = EmbeddedValkey(data_directory / "valkey", listening=valkey, password=secrets.valkey_password)
    database_url = variables.get("DATABASE_URL")
    redis_url = variables.get("REDIS_URL")
    return Servers(
        database_url=database_url or own_postgres.url,
        redis_url=redis_url or own_valkey.url,
        postgres=None if database_url else _describe_child(own_postgres, data_directory, frozen_seconds),
        valkey=None if redis_url else _describe_child(own_valkey, data_directory, frozen_seconds),
        postgres_place=Listening() if database_url else postgres,
        valkey_place=Listening() if redis_url else valkey,
        nats=None
        if nats_url or own_nats is None
        else _describe_child(own_nats, data_directory, frozen_seconds),
        nats_url=nats_url or (own_nats and own_nats.url),
    )


def find_database_url(variables: Mapping[str, str], directory: DataDirectory) -> str:
    """Return the database URL of an installation; the environment wins."""
    if given := variables.get("DATABASE_URL"):
        return _check_address(given, "DATABASE_URL", "postgres", "postgresql")
    last, secrets = _require_started(directory, "DATABASE_URL")
    listening = _require_own(last.postgres_socket_dir, last.postgres_port, directory, "DATABASE_URL")
    return EmbeddedPostgres(
        directory.path / "postgres", listening=listening, password=secrets.postgres_password
    ).url


def find_redis_url(variables: Mapping[str, str], directory: DataDirectory) -> str:
    """Return the Valkey URL of an installation; the environment wins."""
    if given := add_redis_password(variables).get("REDIS_URL"):
        return _check_address(given, "REDIS_URL", *VALKEY_SCHEMES)
    last, secrets = _require_started(directory, "REDIS_URL")
    listening = _require_own(last.valkey_socket_dir, last.valkey_port, directory, "REDIS_URL")
    return EmbeddedValkey(
        directory.path / "valkey", listening=listening, password=secrets.valkey_password
    ).url


def _check_address(url: str, variable: str, *schemes: str) -> str:
    try:
        parse_url(*schemes)(url)
    except SecretValueError as error:
        raise InstallationError(f"{variable} {error}") from None
    return url


def _require_started(directory: DataDirectory, variable: str) -> tuple[Installation, Secrets]:
    last, secrets = directory.read_installation(), directory.read_secrets()
    if last is None or secrets is None:
        raise InstallationError(
            f"There is no installation in {directory.path}. "
            f"Start one with `adloom up`, name its --data-dir, or set {variable}."
        )
    return last, secrets


def _require_own(
    socket_dir: str | None, port: int | None, directory: DataDirectory, variable: str
) -> Listening:
    if socket_dir is None and port is None:
        raise InstallationError(
            f"The installation in {directory.path} was started with {variable}: set it here too."
        )
    return Listening(socket_dir=socket_dir, port=port)


def _describe_child(
    server: EmbeddedPostgres | EmbeddedValkey | EmbeddedNats, data_directory: Path, frozen_seconds: int
) -> ChildSpec:
    program = server.program
    question = QUESTIONS[program.name]
    return ChildSpec(
        program=program,
        prepare=server.prepare,
        wait_until_ready=server.wait_until_ready,
        log_file=data_directory / "logs" / f"{program.name}.log",
        stop_seconds_max=STOP_SECONDS_MAX[program.name],
        watched=Watched(
            frozen_seconds=frozen_seconds,
            is_answering=lambda: is_answering((server.socket, server.port), question),
        ),
    )
