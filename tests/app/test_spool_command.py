"""The spool as an operator sees it: its settings, `adloom ledger spool`, and the doctor."""

import os
import stat
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from adloom.core.clock import SystemClock
from adloom.events.log.event import encode_event
from adloom.events.log.spool.backlog import Backlog
from adloom.events.log.spool.disk import LocalDisk, make_folder
from adloom.events.log.spool.drain import locate_spool, make_spool_folder, open_spool
from adloom.events.log.spool.inspect import SpoolFileInfo, describe_spool
from adloom.ops.checks.event_log import judge_spool
from adloom.ops.checks.finding import FindingState
from adloom.ops.doctor import examine
from adloom.runtime.installation import DataDirectory
from adloom.runtime.settings import DeliverySettings, SettingsError, read_delivery_settings
from tests.events.builders import NOW, an_impression
from tests.support.for_each import for_each

NEEDED = {
    "DATABASE_URL": "postgresql://db/ads",
    "REDIS_URL": "redis://cache",
    "ADLOOM_TOKEN_SECRET": "t" * 40,
}


class UnreachableLog:
    async def append(self, entries: Sequence[bytes]) -> None:
        raise AssertionError(entries)


def settings_with(**variables: str) -> DeliverySettings:
    return read_delivery_settings({**NEEDED, **variables})


async def a_spooled_file(folder: Path, life: int, count: int) -> Backlog:
    make_folder(folder)
    backlog = Backlog(LocalDisk(folder), owner="delivery-1", life=UUID(int=life))
    await backlog.put([encode_event(an_impression(f"event-{number}")) for number in range(count)])
    return backlog


def a_file(*, age: timedelta = timedelta(), is_damaged: bool = False) -> SpoolFileInfo:
    return SpoolFileInfo(
        name="a.damaged" if is_damaged else "a",
        size_bytes=100,
        written_at=NOW - age,
        is_held=False,
        is_damaged=is_damaged,
    )


def test_the_default_spool_is_in_the_data_directory_and_holds_a_gibibyte() -> None:
    settings = settings_with(XDG_DATA_HOME="/home/ada/data")

    home = "/var/lib/adloom" if os.geteuid() == 0 else "/home/ada/data/adloom"
    assert settings.spool_directory == Path(home) / "spool"
    assert settings.spool_bytes_max == 2**30


def test_only_the_owner_can_read_the_spool_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "spool"

    make_spool_folder(settings_with(ADLOOM_SPOOL_DIR=str(folder)))

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_error_about_an_impossible_folder_names_its_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "spool"

    with pytest.raises(SettingsError, match=f"ADLOOM_SPOOL_DIR is '{folder}'"):
        make_spool_folder(settings_with(ADLOOM_SPOOL_DIR=str(folder)))


async def test_a_spool_of_zero_bytes_is_off_and_creates_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    settings = settings_with(ADLOOM_SPOOL_DIR=str(folder), ADLOOM_SPOOL_BYTES_MAX="0")

    async with open_spool(settings, UnreachableLog()) as spool:
        assert spool is None

    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240 - a test


async def test_the_report_shows_the_events_the_age_and_the_process_of_each_file(tmp_path: Path) -> None:
    held = await a_spooled_file(tmp_path, 1, 3)
    left = await a_spooled_file(tmp_path, 2, 1)
    await left.release()

    head, *lines = describe_spool(tmp_path)

    assert head.startswith(f"{tmp_path}: 4 events in 2 files, ")
    assert lines[0].startswith("delivery-1.00000000000000000000000000000001.000001.spool: 3 events, ")
    assert "the oldest of 2026-11-15 12:00:00 UTC; held by a living process." in lines[0]
    assert lines[1].endswith("held by no process.")
    await held.release()


async def test_the_report_lists_damaged_files_separately(tmp_path: Path) -> None:
    await (await a_spooled_file(tmp_path, 1, 2)).release()
    [file] = tmp_path.iterdir()  # noqa: ASYNC240 - a test
    file.rename(f"{file}.damaged")

    head, line = describe_spool(tmp_path)

    assert "0 events in 0 files" in head
    assert line.endswith("damaged; all that could be read was drained.")


def test_a_missing_spool_folder_is_reported_as_empty(tmp_path: Path) -> None:
    assert describe_spool(tmp_path / "spool") == [f"{tmp_path}/spool: 0 events in 0 files, 0 bytes."]


def test_the_variable_overrides_the_folder_in_the_data_directory(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)

    assert locate_spool({}, directory) == tmp_path / "spool"
    assert locate_spool({"ADLOOM_SPOOL_DIR": "/elsewhere"}, directory) == Path("/elsewhere")


@for_each(
    ("files", "has_ledger", "state"),
    [
        ([], True, FindingState.OK),
        ([], False, FindingState.OK),
        ([a_file()], False, FindingState.WARN),
        ([a_file(age=timedelta(hours=1))], False, FindingState.WARN),
        ([a_file()], True, FindingState.WARN),
        ([a_file(age=timedelta(hours=1))], True, FindingState.FAIL),
        ([a_file(), a_file(is_damaged=True)], True, FindingState.FAIL),
    ],
)
def test_the_doctor_rates_the_files_of_the_spool(
    files: list[SpoolFileInfo], state: FindingState, *, has_ledger: bool
) -> None:
    assert judge_spool(files, has_ledger=has_ledger, now=NOW).state is state


async def test_the_doctor_checks_the_spool(tmp_path: Path) -> None:
    await (await a_spooled_file(tmp_path / "spool", 1, 2)).release()

    findings = await examine({}, DataDirectory(tmp_path), SystemClock())

    [finding] = [finding for finding in findings if finding.name == "Spool"]
    assert finding.state is FindingState.WARN
    assert "wait for Valkey" in finding.detail
