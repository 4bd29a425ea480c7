"""The plan of `adloom up`, made before anything is started."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from adloom.app.listeners import LISTEN_FD
from adloom.app.up.plan import UpOptions, UpPlan, make_plan, open_listeners
from adloom.app.up.sample import resolve_magazine
from adloom.core.clock import ManualClock
from adloom.runtime.installation import DataDirectory, make_secrets
from adloom.runtime.outbound.settings import LocalHost, parse_local_hosts
from adloom.runtime.settings import SettingsError
from adloom.runtime.supervisor.child import ChildSpec

SECRETS = make_secrets()
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is warned about


@pytest.fixture
def closing() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as closing:
        yield closing


def a_plan(  # noqa: PLR0913 - each with its default
    folder: Path,
    closing: contextlib.ExitStack,
    variables: Mapping[str, str] | None = None,
    *,
    workers: int = 1,
    is_empty: bool = True,
    control_host: str = "127.0.0.1",
    has_crawler: bool = True,
    has_server_ports: bool = False,
    has_nats: bool = False,
    entity_workers: int = 0,
) -> UpPlan:
    options = UpOptions(
        data_directory=folder,
        host="127.0.0.1",
        control_host=control_host,
        delivery_port=0,
        control_port=0,
        worker_port=0,
        workers=workers,
        has_crawler=has_crawler,
        has_server_ports=has_server_ports,
        has_nats=has_nats,
        entity_workers=entity_workers,
        is_empty=is_empty,
    )
    listeners = open_listeners(options, closing)
    clock = ManualClock(datetime(2026, 11, 15, tzinfo=UTC))
    return make_plan(options, variables or {}, listeners, SECRETS, clock)


def find_child(plan: UpPlan, name: str) -> ChildSpec:
    [child] = [child for child in plan.children if child.program.name == name]
    return child


def test_each_process_has_its_own_socket_and_metrics_port(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    plan = a_plan(tmp_path, closing, workers=3)

    names = [child.program.name for child in plan.children]
    assert names == ["delivery-1", "delivery-2", "delivery-3", "control", "worker"]
    assert len({child.inherited_fds for child in plan.children}) == 5
    assert len({child.program.environment["ADLOOM_METRICS_PORT"] for child in plan.children}) == 5
    assert all(child.program.environment[LISTEN_FD] == str(child.inherited_fds[0]) for child in plan.children)


def test_every_child_is_watched_and_the_bounds_are_settings(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    variables = {"ADLOOM_DELIVERY_FROZEN_SECONDS": "7", "ADLOOM_SERVER_FROZEN_SECONDS": "0"}

    plan = a_plan(tmp_path, closing, variables, has_nats=True, entity_workers=1)

    servers = [
        one for one in (plan.servers.postgres, plan.servers.valkey, plan.servers.nats) if one is not None
    ]
    assert {
        child.program.name: child.watched and child.watched.frozen_seconds
        for child in [*plan.children, *plan.background, *plan.entity_workers, *servers]
    } == {
        "delivery-1": 7,
        "control": 15,
        "worker": 15,
        "crawler": 15,
        "classifier-1": 15,
        "worker-1": 15,
        "postgres": 0,
        "valkey": 0,
        "nats": 0,
    }


@pytest.mark.parametrize(
    ("has_crawler", "expected"), [(True, ["crawler", "classifier-1"]), (False, ["classifier-1"])]
)
def test_the_crawler_can_run_elsewhere(
    tmp_path: Path, closing: contextlib.ExitStack, *, has_crawler: bool, expected: list[str]
) -> None:
    plan = a_plan(tmp_path, closing, has_crawler=has_crawler)

    assert [child.program.name for child in plan.background] == expected
    assert plan.installation.metrics_ports.keys() == {"delivery-1", "control", "worker", "up", *expected}


def test_variables_of_the_environment_reach_the_children(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    plan = a_plan(tmp_path, closing, {"RATE_LIMIT_PERMITS_PER_MINUTE": "7"})

    assert all(child.program.environment["RATE_LIMIT_PERMITS_PER_MINUTE"] == "7" for child in plan.children)


def test_the_spool_is_in_the_data_directory_unless_a_variable_names_another_folder(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    by_default = find_child(a_plan(tmp_path / "data", closing), "delivery-1").program.environment
    given = find_child(a_plan(tmp_path, closing, {"ADLOOM_SPOOL_DIR": f"{tmp_path}/given"}), "delivery-1")

    assert by_default["ADLOOM_SPOOL_DIR"] == f"{tmp_path}/data/spool"
    assert given.program.environment["ADLOOM_SPOOL_DIR"] == f"{tmp_path}/given"


def test_a_country_file_that_cannot_be_used_stops_the_start(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    (tmp_path / "text").write_text("no database")

    for name in ("text", "nothing"):
        with pytest.raises(SettingsError, match=f"ADLOOM_GEOIP_FILE is .*{name}"):
            a_plan(tmp_path / "data", closing, {"ADLOOM_GEOIP_FILE": f"{tmp_path}/{name}"})


def test_a_given_secret_overrides_the_generated_one(tmp_path: Path, closing: contextlib.ExitStack) -> None:
    plan = a_plan(tmp_path, closing, {"JWT_SECRET": "g" * 40})

    environment = find_child(plan, "control").program.environment
    assert environment["JWT_SECRET"] == "g" * 40
    assert environment["ADLOOM_TOKEN_SECRET"] == SECRETS.token_secret


def test_external_servers_are_used_and_no_embedded_ones_are_started(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    variables = {"DATABASE_URL": "postgresql://db/ads", "REDIS_URL": "redis://cache"}

    plan = a_plan(tmp_path, closing, variables)

    assert plan.servers.postgres is None
    assert plan.servers.valkey is None
    assert find_child(plan, "worker").program.environment["DATABASE_URL"] == "postgresql://db/ads"
    assert plan.installation.postgres_socket_dir is None
    assert not (tmp_path / "sockets").exists()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("RATE_LIMIT_PERMITS_PER_MINUTE", "many", "RATE_LIMIT_PERMITS_PER_MINUTE is 'many'"),
        ("SEQ_URL", "http://seq:5341", "SEQ_URL is not read: .* Take it out of the environment"),
    ],
)
def test_an_invalid_variable_is_refused_before_anything_is_started(
    tmp_path: Path, closing: contextlib.ExitStack, name: str, value: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        a_plan(tmp_path, closing, {name: value})


def test_control_and_worker_listen_on_the_control_host_and_delivery_on_the_host(
    closing: contextlib.ExitStack,
) -> None:
    options = UpOptions(
        data_directory=Path("/nowhere"),
        host="127.0.0.2",
        delivery_port=0,
        control_port=0,
        worker_port=0,
        workers=1,
        is_empty=True,
    )

    def hosts(options: UpOptions) -> list[str]:
        listeners = open_listeners(options, closing)
        return [one.getsockname()[0] for one in (*listeners.delivery, listeners.control, listeners.worker)]

    assert hosts(options) == ["127.0.0.2", "127.0.0.1", "127.0.0.1"]
    assert hosts(msgspec.structs.replace(options, control_host="127.0.0.3")) == [
        "127.0.0.2",
        "127.0.0.3",
        "127.0.0.3",
    ]


def test_embedded_servers_keep_their_ports_from_one_start_to_the_next(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    first = a_plan(tmp_path, closing, has_server_ports=True).installation
    DataDirectory(tmp_path).write_installation(first)

    second = a_plan(tmp_path, closing, workers=4, has_server_ports=True).installation

    assert first.postgres_port is not None
    assert (second.postgres_port, second.valkey_port) == (first.postgres_port, first.valkey_port)


def test_embedded_servers_are_reached_by_sockets_and_have_ports_if_asked_for(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    by_default = a_plan(tmp_path, closing)
    with_ports = a_plan(tmp_path, closing, has_server_ports=True)

    for plan in (by_default, with_ports):
        environment = find_child(plan, "worker").program.environment
        folder = plan.installation.postgres_socket_dir
        assert f"@/adloom?host={folder}" in environment["DATABASE_URL"]
        assert environment["REDIS_URL"].startswith("unix://:")
        assert f"@{folder}/valkey.sock" in environment["REDIS_URL"]
    assert (by_default.installation.postgres_port, by_default.installation.valkey_port) == (None, None)
    assert with_ports.installation.postgres_port
    assert with_ports.installation.valkey_port


def test_without_nats_no_worker_knows_of_it(tmp_path: Path, closing: contextlib.ExitStack) -> None:
    plan = a_plan(tmp_path, closing)

    environment = find_child(plan, "worker").program.environment
    assert not {"ADLOOM_NATS_URL", "ADLOOM_WORKER_ROLES"} & set(environment)
    assert (plan.servers.nats, plan.installation.nats_port, plan.entity_workers) == (None, None, [])


def test_entity_workers_run_nothing_but_actors(tmp_path: Path, closing: contextlib.ExitStack) -> None:
    plan = a_plan(tmp_path, closing, has_nats=True, entity_workers=2)

    assert plan.servers.nats is not None
    assert plan.servers.nats.program.name == "nats"
    assert str(plan.installation.nats_port) in str(plan.servers.nats_url)
    shown = [(one.program.name, one.program.environment) for one in plan.entity_workers]
    assert [(name, its["ADLOOM_WORKER_ROLES"], its["WORKER_PORT"]) for name, its in shown] == [
        ("worker-1", "entity", "0"),
        ("worker-2", "entity", "0"),
    ]
    worker = find_child(plan, "worker").program.environment
    assert worker["ADLOOM_WORKER_ROLES"] == "singleton,projections,jobs"
    assert {its["ADLOOM_NATS_URL"] for its in (worker, *(its for _, its in shown))} == {plan.servers.nats_url}
    assert len({*plan.installation.metrics_ports.values(), plan.installation.nats_port}) == 9


def test_nats_of_ones_own_is_used(tmp_path: Path, closing: contextlib.ExitStack) -> None:
    url = "nats://me:secret@10.0.0.1:4222"

    plan = a_plan(tmp_path, closing, {"ADLOOM_NATS_URL": url}, has_nats=True, entity_workers=1)

    assert (plan.servers.nats, plan.servers.nats_url) == (None, url)
    assert plan.installation.nats_port is None


def test_entity_workers_need_nats(tmp_path: Path, closing: contextlib.ExitStack) -> None:
    with pytest.raises(SettingsError, match="--nats"):
        a_plan(tmp_path, closing, entity_workers=1)


def test_the_printed_addresses_are_those_of_the_listeners(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    plan = a_plan(tmp_path, closing)

    assert plan.installation.delivery_port > 0
    assert plan.delivery_url == f"http://127.0.0.1:{plan.installation.delivery_port}"
    assert plan.control_url == f"http://127.0.0.1:{plan.installation.control_port}"


def test_without_a_sample_there_are_no_simulated_visitors_and_no_pages(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    plan = a_plan(tmp_path, closing)

    assert plan.sample is None
    assert find_child(plan, "delivery-1").program.environment["ADLOOM_SAMPLE_PAGES"] == "off"


def test_the_crawler_finds_the_sample_where_delivery_listens(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    plan = a_plan(tmp_path, closing, {"ADLOOM_CRAWL_RESOLVE": "a.test=127.0.0.1:9001"}, is_empty=False)

    place = f"127.0.0.1:{plan.installation.delivery_port}"
    resolved = find_child(plan, "control").program.environment["ADLOOM_CRAWL_RESOLVE"]
    assert resolved == f"hedgerow.example={place},a.test=127.0.0.1:9001"
    assert parse_local_hosts(resolved)["hedgerow.example"].port == plan.installation.delivery_port


def test_without_a_sample_no_host_is_resolved_to_this_machine(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    plan = a_plan(tmp_path, closing)

    assert "ADLOOM_CRAWL_RESOLVE" not in find_child(plan, "control").program.environment


@pytest.mark.parametrize(
    ("address", "place"),
    [("127.0.0.1", "127.0.0.1"), (EVERYWHERE, "127.0.0.1"), ("::", "::1"), ("192.168.1.4", "192.168.1.4")],
)
def test_a_sample_on_every_interface_is_crawled_on_this_machine(address: str, place: str) -> None:
    found = parse_local_hosts(resolve_magazine(address, 8080, ""))

    assert found == {"hedgerow.example": LocalHost(place, 8080)}


def test_what_the_operator_resolves_wins() -> None:
    resolved = resolve_magazine("127.0.0.1", 8080, "hedgerow.example=10.0.0.1:80")

    assert parse_local_hosts(resolved)["hedgerow.example"] == LocalHost("10.0.0.1", 80)


def test_simulated_visitors_know_the_public_address_and_no_secret(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    variables = {
        "PATH": "/bin",
        "DATABASE_URL": "postgresql://a:b@localhost/c",
        "ADLOOM_LOG_LEVEL": "warning",
    }
    plan = a_plan(tmp_path, closing, variables, is_empty=False)

    assert plan.sample is not None
    program = plan.sample.program
    assert program.arguments[-2:] == ("127.0.0.1", str(plan.installation.delivery_port))
    assert program.environment == {"PATH": "/bin", "ADLOOM_LOG_LEVEL": "warning", "ADLOOM_PROCESS": "sample"}
    assert find_child(plan, "delivery-1").program.environment["ADLOOM_SAMPLE_PAGES"] == "on"


def test_control_without_https_on_an_open_address_is_warned_about(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    by_default = a_plan(tmp_path, closing)
    is_open = a_plan(tmp_path, closing, control_host=EVERYWHERE)
    behind_https = a_plan(
        tmp_path, closing, {"ADLOOM_CONTROL_URL": "https://ads.example"}, control_host=EVERYWHERE
    )

    def count(plan: UpPlan) -> int:
        return sum("without https" in warning for warning in plan.warnings)

    assert [count(plan) for plan in (by_default, is_open, behind_https)] == [0, 1, 0]
    environment = find_child(is_open, "control").program.environment
    assert (environment["ADLOOM_CONTROL_HOST"], environment["ADLOOM_DELIVERY_HOST"]) == (
        EVERYWHERE,
        "127.0.0.1",
    )
    assert find_child(is_open, "worker").program.environment["ADLOOM_WORKER_HOST"] == EVERYWHERE


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_processes_of_root_run_as_another_user_or_say_why_not(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    plan = a_plan(tmp_path, closing, is_empty=False, has_nats=True, entity_workers=1)

    assert plan.sample is not None
    children = (*plan.children, *plan.background, *plan.entity_workers, plan.sample)
    users = {child.program.user for child in children}
    is_told = any("run as root" in warning for warning in plan.warnings)
    assert (users == {None}) == is_told
    assert len(users) == 1


def test_a_password_of_redis_without_an_address_is_refused(
    tmp_path: Path, closing: contextlib.ExitStack
) -> None:
    with pytest.raises(SettingsError, match="REDIS_PASSWORD is set and REDIS_URL is not"):
        a_plan(tmp_path, closing, {"REDIS_PASSWORD": "p"})

    plan = a_plan(tmp_path, closing, {"REDIS_PASSWORD": "p", "REDIS_URL": "redis://cache/0"})

    assert find_child(plan, "worker").program.environment["REDIS_URL"] == "redis://:p@cache/0"
