"""What `adloom up` is going to run, decided before anything is started."""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adloom.app.listeners import LISTEN_FD
from adloom.app.up.plan import UpOptions, UpPlan, make_plan, open_listeners
from adloom.core.clock import ManualClock
from adloom.runtime.installation import DataDirectory, make_secrets
from adloom.runtime.settings import SettingsError
from adloom.runtime.supervisor.child import ChildSpec

SECRETS = make_secrets()


@pytest.fixture
def closing() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as closing:
        yield closing


def a_house(
    folder: Path,
    closing: contextlib.ExitStack,
    variables: Mapping[str, str] | None = None,
    *,
    workers: int = 1,
    is_empty: bool = True,
) -> UpPlan:
    options = UpOptions(
        data_directory=folder,
        host="127.0.0.1",
        delivery_port=0,
        control_port=0,
        worker_port=0,
        workers=workers,
        is_empty=is_empty,
    )
    listeners = open_listeners(options, closing)
    clock = ManualClock(datetime(2026, 11, 15, tzinfo=UTC))
    return make_plan(options, variables or {}, listeners, SECRETS, clock)


def named(house: UpPlan, name: str) -> ChildSpec:
    [child] = [child for child in house.children if child.program.name == name]
    return child


def test_each_delivery_process_has_a_socket_and_metrics_of_its_own(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    house = a_house(tmp_path, closing, workers=3)

    names = [child.program.name for child in house.children]
    assert names == ["delivery-1", "delivery-2", "delivery-3", "control", "worker"]
    assert len({child.inherited_fds for child in house.children}) == 5
    assert len({child.program.environment["ADLOOM_METRICS_PORT"] for child in house.children}) == 5
    assert all(
        child.program.environment[LISTEN_FD] == str(child.inherited_fds[0]) for child in house.children
    )


def test_variables_of_the_environment_reach_the_children(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    house = a_house(tmp_path, closing, {"RATE_LIMIT_PERMITS_PER_MINUTE": "7"})

    assert all(child.program.environment["RATE_LIMIT_PERMITS_PER_MINUTE"] == "7" for child in house.children)


def test_the_spool_is_in_the_data_directory_unless_another_place_is_given(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    by_default = named(a_house(tmp_path / "data", closing), "delivery-1").program.environment
    given = named(a_house(tmp_path, closing, {"ADLOOM_SPOOL_DIR": f"{tmp_path}/given"}), "delivery-1")

    assert by_default["ADLOOM_SPOOL_DIR"] == f"{tmp_path}/data/spool"
    assert given.program.environment["ADLOOM_SPOOL_DIR"] == f"{tmp_path}/given"


def test_a_secret_that_was_given_wins_over_the_one_that_was_made(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    house = a_house(tmp_path, closing, {"JWT_SECRET": "g" * 40})

    environment = named(house, "control").program.environment
    assert environment["JWT_SECRET"] == "g" * 40
    assert environment["ADLOOM_TOKEN_SECRET"] == SECRETS.token_secret


def test_servers_that_are_named_are_used_and_not_run(tmp_path: Path, closing: contextlib.ExitStack) -> None:
    variables = {"DATABASE_URL": "postgresql://db/ads", "REDIS_URL": "redis://cache"}

    house = a_house(tmp_path, closing, variables)

    assert house.servers.postgres is None
    assert house.servers.valkey is None
    assert named(house, "worker").program.environment["DATABASE_URL"] == "postgresql://db/ads"
    assert house.installation.postgres_port is None


def test_a_variable_that_is_wrong_stops_before_anything_is_started(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    with pytest.raises(SettingsError, match="RATE_LIMIT_PERMITS_PER_MINUTE is 'many'"):
        a_house(tmp_path, closing, {"RATE_LIMIT_PERMITS_PER_MINUTE": "many"})


def test_embedded_servers_keep_their_ports_from_one_start_to_the_next(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    first = a_house(tmp_path, closing).installation
    DataDirectory(tmp_path).write_installation(first)

    second = a_house(tmp_path, closing, workers=4).installation

    assert (second.postgres_port, second.valkey_port) == (first.postgres_port, first.valkey_port)


def test_the_addresses_are_those_that_are_listened_on(tmp_path: Path, closing: contextlib.ExitStack) -> None:
    house = a_house(tmp_path, closing)

    assert house.installation.delivery_port > 0
    assert house.delivery_url == f"http://127.0.0.1:{house.installation.delivery_port}"
    assert house.control_url == f"http://127.0.0.1:{house.installation.control_port}"


def test_without_a_sample_there_are_no_simulated_visitors_and_no_pages(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    house = a_house(tmp_path, closing)

    assert house.sample is None
    assert named(house, "delivery-1").program.environment["ADLOOM_SAMPLE_PAGES"] == "off"


def test_simulated_visitors_know_the_public_address_and_no_secret(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    variables = {
        "PATH": "/bin",
        "DATABASE_URL": "postgresql://a:b@localhost/c",
        "ADLOOM_LOG_LEVEL": "warning",
    }
    house = a_house(tmp_path, closing, variables, is_empty=False)

    assert house.sample is not None
    program = house.sample.program
    assert program.arguments[-2:] == ("127.0.0.1", str(house.installation.delivery_port))
    assert program.environment == {"PATH": "/bin", "ADLOOM_LOG_LEVEL": "warning", "ADLOOM_PROCESS": "sample"}
    assert named(house, "delivery-1").program.environment["ADLOOM_SAMPLE_PAGES"] == "on"
