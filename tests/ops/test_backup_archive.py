"""The archive of a backup: it is read as it was written, or refused."""

import contextlib
import gzip
import io
import tarfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adloom.core.clock import SystemClock
from adloom.core.progress import SilentProgress
from adloom.ops.backup.append_only import open_append_only, parse_manifest
from adloom.ops.backup.archive import (
    FORMAT,
    MANIFEST,
    BackupError,
    BackupManifest,
    extract_archive,
    verify_archive,
    write_archive,
)
from adloom.ops.backup.dump import split_password
from adloom.ops.backup.make import make_backup
from adloom.ops.backup.restore import restore_backup
from adloom.runtime.installation import DataDirectory, Installation, make_secrets
from adloom.runtime.schema import DatabaseError
from tests.support.builders import NOON

FILES = {
    "secrets.json": b"{}",
    "valkey/appendonly.aof.1.incr.aof": b"*1\r\n",
    "spool/delivery-1@a.1": b"\0\1",
    f"assets/ab/{'ab' * 32}.jpg": b"\xff\xd8\xff",
    f"assets/cd/{'cd' * 32}/img/a.png": b"\x89PNG",
    "postgres.dump": b"PGDMP" * 300,
}


def an_archive(path: Path, *, revision: str = "0001", format_number: int = FORMAT) -> Path:
    manifest = BackupManifest(format=format_number, version="1.0", revision=revision, made_at=NOON)
    with write_archive(path, lambda _: None) as archive:
        archive.add_bytes(MANIFEST, msgspec.json.encode(manifest))
        for name, data in FILES.items():
            archive.add_bytes(name, data)
    return path


def verify(path: Path) -> BackupManifest:
    return verify_archive(path, SilentProgress())


def test_an_archive_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = an_archive(tmp_path / "backup")
    (tmp_path / "out").mkdir()

    manifest = verify(path)
    extract_archive(path, tmp_path / "out", lambda _: None)

    assert manifest.revision == "0001"
    assert path.stat().st_mode & 0o777 == 0o600
    assert {name: (tmp_path / "out" / name).read_bytes() for name in FILES} == FILES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(min_value=0), byte=st.integers(1, 255))
def test_a_changed_byte_changes_nothing_or_is_refused(tmp_path: Path, place: int, byte: int) -> None:
    path = tmp_path / "backup"
    path.unlink(missing_ok=True)
    whole = bytearray(an_archive(path).read_bytes())
    whole[place % len(whole)] ^= byte
    path.write_bytes(whole)

    with contextlib.suppress(BackupError):
        verify(path)
        with tarfile.open(path) as tar:
            read = {name: tar.extractfile(name).read() for name in FILES}  # pyright: ignore[reportOptionalMemberAccess]  verified
        assert read == FILES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(min_value=0.0, max_value=0.85))
def test_an_archive_that_is_cut_off_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "backup"
    path.unlink(missing_ok=True)
    data = an_archive(path).read_bytes().rstrip(b"\0")
    path.write_bytes(data[: int(len(data) * share)])

    with pytest.raises(BackupError):
        verify(path)


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/passwd", "valkey/../../evil", "notes.txt", "spool/..", ".json"]
)
def test_an_archive_with_other_files_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "backup"
    with tarfile.open(path, "w") as tar:
        member = tarfile.TarInfo(name)
        member.size = 1
        tar.addfile(member, io.BytesIO(b"x"))

    with pytest.raises(BackupError, match="is no backup of Adloom"):
        verify(path)


@pytest.mark.parametrize("data", [b"", b"# Adloom\n" * 200, gzip.compress(b"an archive" * 100)])
def test_a_file_that_is_no_archive_is_refused_as_such(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(data)

    with pytest.raises(BackupError, match=r"notes\.txt is no backup of Adloom: .* `adloom backup`"):
        verify(path)


def test_an_archive_that_ends_within_a_file_is_said_to_be_cut_off(tmp_path: Path) -> None:
    path = an_archive(tmp_path / "backup")
    data = path.read_bytes().rstrip(b"\0")
    path.write_bytes(data[: len(data) // 2])

    with pytest.raises(BackupError, match="cut off or damaged"):
        verify(path)


async def test_a_backup_of_a_newer_schema_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = an_archive(tmp_path / "backup", revision="9999")

    with pytest.raises(BackupError, match=r"with the schema 9999; this one knows schemas up to \d+"):
        await restore_backup(
            DataDirectory(tmp_path / "data"), path, SilentProgress(), now=NOON, is_replacing=True
        )


async def test_a_restore_over_an_installation_has_to_be_asked_for(tmp_path: Path) -> None:
    path = an_archive(tmp_path / "backup")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secrets.json").write_text("{}")

    with pytest.raises(BackupError, match=r"has an installation \(secrets\.json\).*--replace"):
        await restore_backup(
            DataDirectory(tmp_path / "data"), path, SilentProgress(), now=NOON, is_replacing=False
        )

    assert [one.name for one in (tmp_path / "data").iterdir()] == ["secrets.json"]


async def test_there_must_be_something_to_back_up_and_a_name_that_is_free(tmp_path: Path) -> None:
    directory, now = DataDirectory(tmp_path / "data"), SystemClock().now()
    taken = tmp_path / "taken"
    taken.touch()

    with pytest.raises(BackupError, match="nothing to back up"):
        await make_backup(directory, tmp_path / "spool", tmp_path / "new", SilentProgress(), now=now)
    with pytest.raises(BackupError, match="is there already"):
        await make_backup(directory, tmp_path / "spool", taken, SilentProgress(), now=now)


async def test_a_backup_while_the_database_is_down_says_which_one_does_not_answer(tmp_path: Path) -> None:
    directory, now = DataDirectory(tmp_path / "data"), SystemClock().now()
    (directory.path / "postgres").mkdir(parents=True)
    directory.write_secrets(make_secrets())
    directory.write_installation(
        Installation(
            version="1",
            pid=1,
            started_at=now,
            host="127.0.0.1",
            delivery_port=1,
            control_port=2,
            worker_port=3,
            postgres_socket_dir=str(tmp_path),
            valkey_socket_dir=str(tmp_path),
        )
    )

    with directory.lock(), pytest.raises(DatabaseError, match=f"at {tmp_path} cannot be used: "):
        await make_backup(directory, tmp_path / "spool", tmp_path / "new", SilentProgress(), now=now)


def test_an_archive_that_cannot_be_unpacked_is_not_called_damaged(tmp_path: Path) -> None:
    path = an_archive(tmp_path / "backup")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "valkey").touch()

    with pytest.raises(BackupError, match=r"backup cannot be unpacked into .*full: .*\. Make room there\."):
        extract_archive(path, tmp_path / "full", lambda _: None)


def test_a_format_of_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="has format 2"):
        verify(an_archive(tmp_path / "backup", format_number=2))


def test_the_files_of_valkey_are_those_of_its_manifest_up_to_their_length_now(tmp_path: Path) -> None:
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    names = ("a.1.base.rdb", "a.1.incr.aof")
    for name in (*names, "a.0.old.aof"):
        (folder / name).write_bytes(b"12345")
    text = "file a.1.base.rdb seq 1 type b\nfile a.0.old.aof seq 0 type h\nfile a.1.incr.aof seq 1 type i\n"
    (folder / "a.manifest").write_text(text)

    fixed = open_append_only(tmp_path)
    with (folder / "a.1.incr.aof").open("ab") as appending:
        appending.write(b"later")

    assert parse_manifest(text) == list(names)
    assert [(one.name, one.file.read(one.size)) for one in fixed[1:]] == [(name, b"12345") for name in names]
    for one in fixed:
        one.file.close()


def test_a_password_is_not_on_the_command_line() -> None:
    assert split_password("postgresql://adloom:p%40ss@/adloom?host=/run/a") == (
        "postgresql://adloom@/adloom?host=/run/a",
        "p%40ss",
    )
