"""The real `adloom up`: what it prints and refuses, and what commands say of it."""

import os
import re
import signal
import socket
import time
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from adloom.runtime.installation import DataDirectory
from tests.docs.pages import MONITORING
from tests.support.product import Product, adloom, status_of, wait_until
from tests.support.promtool import find_exported, find_metrics, needs_promtool, run_promtool

pytestmark = pytest.mark.process

CONNECTIONS = 20
PROBE_SECONDS_MAX = 0.2
PROBES_MAX = 20
FROZEN_SENTENCE = re.compile(r"gave no sign of life for \d+ s and was replaced")
HEALED_SECONDS_MAX = 60.0  # It takes two or three seconds; a busy machine takes longer.


@pytest.fixture(scope="module")
def product(killed_product: Product) -> Product:
    return killed_product


def test_the_start_prints_the_addresses_the_login_and_the_ready_line(product: Product) -> None:
    assert product.delivery_url in product.output
    assert product.control_url in product.output
    assert "email: admin@adloom.local" in product.output
    assert "\nadloom ready" in product.output


def test_the_first_password_is_in_no_journal(product: Product) -> None:
    secrets = DataDirectory(product.data_dir).read_secrets()
    assert secrets is not None

    assert str(product.data_dir / "secrets.json") in product.output
    assert secrets.admin_password
    assert secrets.admin_password not in product.output
    assert "welcome?token" not in product.output
    # Programs that look for a password there must not take another word for it.
    assert not re.search(r"password\W+\S", product.output, re.IGNORECASE)


def test_the_first_log_in_replaces_the_password(product: Product) -> None:
    secrets = DataDirectory(product.data_dir).read_secrets()
    assert secrets is not None
    body = {"email": "admin@adloom.local", "password": secrets.admin_password}

    # Hashing takes seconds beside other products that start.
    with httpx.Client(base_url=product.control_url, timeout=30) as client:
        refused = client.post("/auth/login", json=body)
        answer = client.post("/auth/login", json={**body, "newPassword": "a password of my own"})

    assert refused.json()["errorCode"] == "PASSWORD_CHANGE_REQUIRED"
    assert answer.status_code == 200


def test_a_running_installation_lists_and_revokes_tokens_of_the_command_line(product: Product) -> None:
    data_dir = ("--data-dir", str(product.data_dir))
    token = adloom("token", "--role", "viewer", *data_dir).out.strip()
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{product.control_url}/admin/banners"
    listed = adloom("token", "list", *data_dir).out.splitlines()
    [mine] = [line for line in listed if line.endswith("viewer")]
    assert "never used" in mine
    assert httpx.get(url, headers=headers).status_code == 200

    done = adloom("token", "revoke", mine.split()[0], *data_dir)

    assert done.code == 0, done.err
    assert httpx.get(url, headers=headers).status_code == 401
    assert adloom("token", "revoke", mine.split()[0], *data_dir).code == 1


def test_only_the_owner_can_read_the_secrets(product: Product) -> None:
    mode = (product.data_dir / "secrets.json").stat().st_mode

    assert mode & 0o777 == 0o600


def test_the_servers_listen_on_no_port_and_only_their_user_can_open_their_sockets(product: Product) -> None:
    pids = [*product.children("postgres"), *product.children("valkey")]
    folder = Path(product.installation.postgres_socket_dir or "")

    assert len(pids) == 2
    assert all(psutil.Process(pid).net_connections(kind="inet") == [] for pid in pids)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in folder.iterdir() if path.is_socket()} == {".s.PGSQL.5432", "valkey.sock"}


def test_no_process_listens_beyond_loopback(product: Product) -> None:
    first = psutil.Process(product.installation.pid)
    listening = {
        (ip_address(one.laddr.ip), one.laddr.port)
        for process in [first, *first.children(recursive=True)]
        for one in connections_of(process)
        if one.status == psutil.CONN_LISTEN
    }

    assert product.installation.delivery_port in {port for _, port in listening}
    assert {address for address, _ in listening if not address.is_loopback} == set()


def connections_of(process: psutil.Process) -> Sequence[Any]:
    """Return its connections; none if it has ended, as a session of PostgreSQL may."""
    try:
        return process.net_connections(kind="inet")
    except psutil.NoSuchProcess:
        return ()


def test_the_process_that_others_are_forked_from_has_started_and_opened_nothing(product: Product) -> None:
    [server] = [
        child
        for child in psutil.Process(product.process.pid).children()
        if "adloom.runtime.supervisor.fork_server" in child.cmdline()
    ]

    assert server.num_threads() == 1
    assert server.num_fds() == 4  # The three of every process, and the socket of its requests.
    assert server.net_connections("inet") == []


def test_every_process_has_its_own_metrics_port(product: Product) -> None:
    ports = product.installation.metrics_ports

    assert sorted(ports) == [
        "classifier-1",
        "control",
        "crawler",
        "delivery-1",
        "delivery-2",
        "up",
        "worker",
    ]
    assert all(status_of(f"http://127.0.0.1:{port}/metrics") == 200 for port in ports.values())


def test_every_metric_of_an_alert_or_a_dashboard_is_exported(product: Product) -> None:
    exported = set[str]().union(*(find_exported(scrape(port)) for port in metrics_ports(product)))

    assert find_metrics() - exported == set()


def test_every_metric_is_in_the_guide(product: Product) -> None:
    exported = set[str]().union(*(find_exported(scrape(port)) for port in metrics_ports(product)))
    guide = MONITORING.read_text(encoding="utf-8")

    ours = {re.sub("_(bucket|count|sum)$", "", name) for name in exported if name.startswith("adloom_")}
    assert {name for name in ours if f"`{name}" not in guide} == set()


@needs_promtool
def test_prometheus_has_nothing_to_object_to(product: Product) -> None:
    said = {run_promtool("check", "metrics", text=scrape(port)) for port in metrics_ports(product)}

    assert said == {""}


def metrics_ports(product: Product) -> list[int]:
    return list(product.installation.metrics_ports.values())


def scrape(port: int) -> str:
    return httpx.get(f"http://127.0.0.1:{port}/metrics").raise_for_status().text


def test_a_second_start_on_the_same_folder_is_refused_and_names_the_first_process(product: Product) -> None:
    done = adloom("up", "--data-dir", str(product.data_dir))

    assert done.code == 1
    assert done.err.count("\n") == 1
    assert str(product.data_dir) in done.err
    assert str(product.process.pid) in done.err


def test_the_error_about_a_busy_port_names_the_port_and_its_flag(product: Product) -> None:
    port = product.installation.delivery_port

    done = adloom("up", "--data-dir", f"{product.data_dir}.other", "--delivery-port", str(port))

    assert done.code == 1
    assert done.err.count("\n") == 1
    assert str(port) in done.err
    assert "--delivery-port" in done.err


def test_no_connection_is_refused_while_a_delivery_process_is_replaced(product: Product) -> None:
    address = ("127.0.0.1", product.installation.delivery_port)
    killed = product.kill("delivery")

    def is_replaced() -> bool:
        # A refused connection would raise; a connection to the killed process waits for its successor.
        socket.create_connection(address).close()
        now = product.children("delivery")
        return killed not in now and len(now) == 2

    wait_until(is_replaced, seconds=HEALED_SECONDS_MAX, what="replaced")
    assert status_of(f"{product.delivery_url}/health/live") == 200


def test_a_frozen_delivery_process_gets_no_connections_and_is_replaced(product: Product) -> None:
    # One that has just been replaced has a minute for its first sign, so the older one is stopped.
    ports = [product.installation.metrics_ports[name] for name in ("delivery-1", "delivery-2")]
    wait_until(
        lambda: all(status_of(f"http://127.0.0.1:{port}/metrics") == 200 for port in ports),
        seconds=HEALED_SECONDS_MAX,
        what="both run",
    )
    frozen = min(product.children("delivery"), key=lambda pid: psutil.Process(pid).create_time())
    os.kill(frozen, signal.SIGSTOP)
    stopped_at = time.monotonic()

    wait_until(lambda: "child_silent" in product.output, seconds=HEALED_SECONDS_MAX, what="silent")
    # From now on all new connections go to the other one.
    answers: list[int | None] = []
    while is_stopped(frozen) and len(answers) < CONNECTIONS:
        answers.append(status_of(f"{product.delivery_url}/health/live"))
    assert answers, "not replaced yet"
    assert set(answers) == {200}
    wait_until(
        lambda: frozen not in product.children("delivery") and len(product.children("delivery")) == 2,
        seconds=HEALED_SECONDS_MAX,
        what="replaced",
    )

    # Five seconds after its last sign, which it may have given up to a second before it was stopped.
    assert time.monotonic() - stopped_at >= 4.0
    port = product.installation.metrics_ports["up"]
    metrics = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    assert re.search(r'adloom_children_frozen_total\{child="delivery-[12]"\} 1\.0', metrics)
    with product.admin() as admin:
        wait_until(
            lambda: FROZEN_SENTENCE.search(admin.get("/admin/attention").text) is not None,
            seconds=HEALED_SECONDS_MAX,
            what="told",
        )


def test_probes_answer_while_servers_are_frozen_which_are_told_to_go_on(product: Product) -> None:
    wait_until(product.is_well, seconds=HEALED_SECONDS_MAX, what="well")
    servers = [product.children("postgres")[0], product.children("valkey")[0]]
    urls = (product.delivery_url, product.control_url, product.worker_url)
    # Whoever would tell them to go on is stopped first; that it slept itself must be nobody's death.
    os.kill(product.process.pid, signal.SIGSTOP)
    for pid in servers:
        for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            process.suspend()

    try:
        with product.admin() as admin:
            answer = admin.get("/admin/banners", timeout=30)
            probes = [probe(admin, f"{url}/health/ready") for url in urls]
    finally:
        os.kill(product.process.pid, signal.SIGCONT)
    for pid in servers:
        wait_until(lambda pid=pid: not is_stopped(pid), seconds=HEALED_SECONDS_MAX, what="running")
    wait_until(product.is_well, seconds=HEALED_SECONDS_MAX, what="well")

    assert answer.status_code == 503
    assert [postgres for postgres, _ in probes] == ["unavailable"] * 3
    assert max(seconds for _, seconds in probes) < PROBE_SECONDS_MAX
    assert servers == [product.children("postgres")[0], product.children("valkey")[0]]


def probe(client: httpx.Client, address: str) -> tuple[str, float]:
    """Return what a process says of PostgreSQL, and how long it took at best: the machine may be busy."""
    said, seconds = "", list[float]()
    while len(seconds) < PROBES_MAX and min(seconds, default=1.0) >= PROBE_SECONDS_MAX:
        asked_at = time.monotonic()
        said = client.get(address).json()["checks"]["postgres"]
        seconds.append(time.monotonic() - asked_at)
    return said, min(seconds)


def is_stopped(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False


def test_the_doctor_reports_a_running_installation_as_healthy(product: Product) -> None:
    wait_until(product.is_well, seconds=HEALED_SECONDS_MAX, what="well")

    done = adloom("doctor", "--data-dir", str(product.data_dir))

    assert done.code == 0, done.out
    assert "fail" not in done.out
    assert "Migrations" in done.out


def test_migrate_finds_the_database_of_a_running_installation(product: Product) -> None:
    done = adloom("migrate", "--data-dir", str(product.data_dir))

    assert done.code == 0, done.err
    assert "revision" in done.out
