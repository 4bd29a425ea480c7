"""The doctor's findings, each with a remedy."""

import io
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from adloom.core.clock import SystemClock
from adloom.events.log.stream import EventLogSize, Lag
from adloom.ops.attention.store import check_countries
from adloom.ops.checks import database, event_log, machine, processes
from adloom.ops.checks.finding import Finding, FindingState, report_ok, warn
from adloom.ops.doctor import examine, is_well, show
from adloom.runtime.installation import DataDirectory, make_secrets
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from adloom.runtime.telemetry.heartbeat import HeartbeatReader, Reading
from adloom.runtime.valkey import Valkey
from adloom.serving.health import IndexCheck
from tests.support.builders import NOON
from tests.support.control import Client
from tests.support.for_each import for_each
from tests.support.heartbeats import publish_heartbeat

PORTS = {"delivery": 8080, "control": 8090}


def test_a_server_that_lets_time_run_out_is_reported_with_that_cause() -> None:
    finding = database.report_unreachable("postgresql://ads@db.example/ads", TimeoutError())

    assert finding.detail.endswith(" does not answer: TimeoutError")


def test_outside_a_terminal_each_finding_is_one_line() -> None:
    told = io.StringIO()
    long = "a detail that is longer than the eighty columns which a terminal has where nobody knows its width"

    show([report_ok("Disk", long), warn("Index", "old [1]", "wait")], Console(file=told))

    assert told.getvalue().splitlines() == [
        f"ok    Disk   {long}",
        "warn  Index  old [1]",
        "             → wait",
    ]


@for_each(
    ("finding", "state"),
    [
        (machine.check_python((3, 11)), FindingState.OK),
        (machine.check_python((3, 10)), FindingState.FAIL),
        (machine.judge_space(50_000_000_000), FindingState.OK),
        (machine.judge_space(2_000_000_000), FindingState.WARN),
        (machine.judge_space(100_000_000), FindingState.FAIL),
        (database.judge_version(180_006, "18.6"), FindingState.OK),
        (database.judge_version(140_010, "14.10"), FindingState.FAIL),
        (database.judge_clock(timedelta(milliseconds=-20)), FindingState.OK),
        (database.judge_clock(timedelta(seconds=-3)), FindingState.WARN),
        (database.judge_clock(timedelta(minutes=3)), FindingState.FAIL),
        (database.judge_schema("0003", "0003"), FindingState.OK),
        (database.judge_schema("0002", "0003"), FindingState.FAIL),
        (database.judge_schema(None, "0003"), FindingState.FAIL),
        (database.judge_schema("0004", "0003"), FindingState.FAIL),
        (database.judge_stopped_schema("0003", ["0002", "0003"]), FindingState.OK),
        (database.judge_stopped_schema("0001", ["0001", "0002", "0003"]), FindingState.WARN),
        (database.judge_stopped_schema("0004", ["0002", "0003"]), FindingState.FAIL),
        (event_log.judge_version({"valkey_version": "9.1.2", "redis_version": "7.2.4"}), FindingState.OK),
        (event_log.judge_version({"redis_version": "7.0.0"}), FindingState.OK),
        (event_log.judge_version({"redis_version": "6.2.1"}), FindingState.FAIL),
        (event_log.judge_durability({"aof_enabled": 1, "aof_last_write_status": "ok"}), FindingState.OK),
        (event_log.judge_durability({"aof_enabled": 0}), FindingState.WARN),
        (
            event_log.judge_durability({"aof_enabled": 1, "maxmemory_policy": "allkeys-lru"}),
            FindingState.WARN,
        ),
        (event_log.judge_durability({"aof_enabled": 1, "aof_last_write_status": "err"}), FindingState.FAIL),
        (event_log.judge_lag("events", Lag(entries=0, seconds=0)), FindingState.OK),
        (event_log.judge_lag("events", Lag(entries=9, seconds=1)), FindingState.OK),
        (event_log.judge_lag("events", Lag(entries=9, seconds=20)), FindingState.WARN),
        (event_log.judge_lag("events", Lag(entries=9, seconds=2_000)), FindingState.FAIL),
        (event_log.judge_owners({"events": "worker@host", "topics": "worker@host"}), FindingState.OK),
        (event_log.judge_owners({"events": "worker@host", "topics": None}), FindingState.WARN),
        (event_log.judge_dead(0), FindingState.OK),
        (event_log.judge_dead(3), FindingState.WARN),
        (event_log.judge_dead(10_000), FindingState.FAIL),
        (
            event_log.judge_memory(EventLogSize(9, 900), {"used_memory": 1_000, "maxmemory": 0}),
            FindingState.OK,
        ),
        (
            event_log.judge_memory(EventLogSize(9, 900), {"used_memory": 1_000, "maxmemory": 9_000}),
            FindingState.OK,
        ),
        (
            event_log.judge_memory(EventLogSize(9, 900), {"used_memory": 8_000, "maxmemory": 9_000}),
            FindingState.WARN,
        ),
        (
            event_log.judge_memory(EventLogSize(9, 900), {"used_memory": 8_900, "maxmemory": 9_000}),
            FindingState.FAIL,
        ),
        (processes.judge_index(IndexCheck("ok", 7, 0.2), catalog_version=7), FindingState.OK),
        (processes.judge_index(IndexCheck("ok", 7, 9.0), catalog_version=8), FindingState.WARN),
        (processes.judge_index(IndexCheck("ok", 7, 99.0), catalog_version=8), FindingState.FAIL),
        (processes.judge_index(None, catalog_version=8), FindingState.FAIL),
    ],
)
def test_each_finding_is_judged_by_its_limits(finding: Finding, state: FindingState) -> None:
    assert finding.state is state


def test_ports_are_free_for_a_start() -> None:
    assert machine.check_ports(PORTS, is_running=False, is_taken=lambda _: False).state is FindingState.OK


def test_a_taken_port_is_named_with_the_option_that_changes_it() -> None:
    finding = machine.check_ports(PORTS, is_running=False, is_taken=lambda port: port == 8090)

    assert finding.state is FindingState.FAIL
    assert "control 8090" in finding.detail
    assert "--control-port" in finding.remedy


def test_a_running_installation_must_use_its_own_ports() -> None:
    assert machine.check_ports(PORTS, is_running=True, is_taken=lambda _: True).state is FindingState.OK
    assert machine.check_ports(PORTS, is_running=True, is_taken=lambda _: False).state is FindingState.FAIL


def test_secrets_that_others_can_read_are_a_failure(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.write_secrets(make_secrets())
    directory.secrets_path.chmod(0o644)

    finding = machine.check_secrets(directory)

    assert finding.state is FindingState.FAIL
    assert "chmod 600" in finding.remedy


async def test_external_servers_are_examined_while_the_product_is_stopped(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    variables = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}

    findings = await examine(variables, DataDirectory(tmp_path), SystemClock())

    by_name = {finding.name: finding for finding in findings}
    assert by_name["PostgreSQL"].state is FindingState.OK
    assert by_name["Migrations"].state is FindingState.OK
    assert by_name["Clock"].state is FindingState.OK
    assert by_name["Valkey"].state is FindingState.OK
    assert by_name["Queue lag, event_tables"].state is FindingState.OK
    assert by_name["Dead letters"].state is FindingState.OK
    assert by_name["Ledger memory"].state is FindingState.OK
    assert by_name["Owners"].detail.startswith("no worker runs event_tables")
    assert by_name["Delivery"].detail == "not running"
    assert by_name["Countries"].state is FindingState.OK


async def test_a_server_that_does_not_answer_is_a_failure_without_its_password(tmp_path: Path) -> None:
    variables = {
        "DATABASE_URL": f"postgresql://ada:a-password@127.0.0.1:{find_port()}/ads",
        "REDIS_URL": f"redis://:a-password@127.0.0.1:{find_port()}/0",
    }

    findings = await examine(variables, DataDirectory(tmp_path), SystemClock())

    failed = {finding.name for finding in findings if finding.state is FindingState.FAIL}
    assert {"PostgreSQL", "Valkey"} <= failed
    assert not is_well(findings)
    assert not any("a-password" in f"{finding.detail}{finding.remedy}" for finding in findings)


async def test_an_address_that_cannot_be_read_is_a_failure_without_its_password(tmp_path: Path) -> None:
    variables = {
        "DATABASE_URL": "postgresql://a:a-password@db:None/x",
        "REDIS_URL": "redis://:a-password@[::1/0",
    }

    findings = await examine(variables, DataDirectory(tmp_path), SystemClock())

    by_name = {finding.name: finding for finding in findings}
    assert by_name["PostgreSQL"].detail == "DATABASE_URL must be an address like postgres://host/…."
    assert by_name["Valkey"].detail == "REDIS_URL must be an address like redis://host/…."


def test_the_migrations_that_a_stopped_installation_lacks_are_named() -> None:
    finding = database.judge_stopped_schema("0001", ["0001", "0002", "0003"])

    assert "not applied yet: 0002, 0003" in finding.detail


async def test_rules_about_countries_without_a_source_of_countries_are_a_warning(
    admin: Client, pool: Pool, valkey: Valkey
) -> None:
    campaign = await admin.make_campaign(name="For Germany")
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
    await admin.make_rule(campaign, ruleType="country", operator="in", value=["DE"])

    found: list[Finding] = []
    for file in ("", "countries.mmdb"):
        await publish_heartbeat(valkey, "delivery-1", Reading(index_version=1), geoip_file=file)
        async with pool.acquire() as connection:
            found.append(await check_countries(connection, HeartbeatReader(valkey), now=NOON))

    assert [one.state for one in found] == [FindingState.WARN, FindingState.OK]
    assert "For Germany" in found[0].detail
    assert "ADLOOM_GEOIP_FILE" in found[0].remedy
