"""A data directory: its lock, its secrets, and its ports."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from adloom.runtime.installation import (
    DataDirectory,
    Installation,
    InstallationError,
    LockedError,
    find_default_data_directory,
    make_secrets,
)
from adloom.runtime.settings import SECRET_CHARACTERS_MIN

HOLDS_IT = """
import sys
from pathlib import Path
from adloom.runtime.installation import DataDirectory
with DataDirectory(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""

WRITES_WITHOUT_ROOM = """
import resource, sys
from pathlib import Path
from adloom.runtime.installation import DataDirectory, InstallationError, make_secrets
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
directory = DataDirectory(Path(sys.argv[1]))
try:
    directory.lock().__enter__() if sys.argv[2] == "lock" else directory.write_secrets(make_secrets())
except InstallationError as error:
    print(error)
"""


def an_installation() -> Installation:
    return Installation(
        version="0.1.0",
        pid=1,
        started_at=datetime(2026, 11, 15, tzinfo=UTC),
        host="127.0.0.1",
        delivery_port=8080,
        control_port=8090,
        worker_port=3001,
        postgres_port=21_000,
        metrics_ports={"control": 21_002},
    )


def test_the_data_of_root_is_in_var_lib() -> None:
    assert find_default_data_directory({"HOME": "/root"}, is_root=True) == Path("/var/lib/adloom")


def test_the_data_of_a_user_is_in_its_data_home() -> None:
    assert find_default_data_directory({"HOME": "/home/ada"}, is_root=False) == Path(
        "/home/ada/.local/share/adloom"
    )
    assert find_default_data_directory({"XDG_DATA_HOME": "/data"}, is_root=False) == Path("/data/adloom")


def test_a_data_directory_is_created_with_its_parents_and_readable_by_others(tmp_path: Path) -> None:
    DataDirectory(tmp_path / "a" / "b").make()

    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o755


def test_the_error_for_a_folder_that_cannot_be_created_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InstallationError, match="--data-dir"):
        DataDirectory(tmp_path / "file" / "data").make()


def test_a_data_directory_is_locked_by_one_process_at_a_time(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS_IT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()

        with (
            pytest.raises(LockedError, match=rf"{tmp_path} .* process {holder.pid}"),
            DataDirectory(tmp_path).lock(),
        ):
            pass
        assert DataDirectory(tmp_path).read_holder_pid() == holder.pid

        holder.kill()
        holder.wait()
    with DataDirectory(tmp_path).lock():
        assert DataDirectory(tmp_path).read_holder_pid() == os.getpid()


def test_unlocking_a_data_directory_removes_the_lock_file(tmp_path: Path) -> None:
    with DataDirectory(tmp_path).lock():
        assert (tmp_path / "lock").exists()

    assert list(tmp_path.iterdir()) == []
    assert DataDirectory(tmp_path).read_holder_pid() is None


def test_written_secrets_can_be_read_only_by_their_owner(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    secrets = make_secrets()

    directory.write_secrets(secrets)

    assert directory.read_secrets() == secrets
    assert directory.secrets_path.stat().st_mode & 0o777 == 0o600


def test_secrets_of_an_older_installation_are_read_with_defaults(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    secrets = msgspec.to_builtins(make_secrets())
    del secrets["sealing_secret"]
    directory.secrets_path.write_bytes(msgspec.json.encode(secrets))

    kept = directory.read_secrets()

    assert kept is not None
    assert kept.sealing_secret == ""


def test_secrets_differ_and_are_long_enough_to_sign_with() -> None:
    first, second = make_secrets(), make_secrets()

    assert first.jwt_secret != second.jwt_secret
    assert first.jwt_secret != first.token_secret
    assert len(first.jwt_secret) >= SECRET_CHARACTERS_MIN


def test_a_written_installation_can_be_read(tmp_path: Path) -> None:
    DataDirectory(tmp_path).write_installation(an_installation())

    assert DataDirectory(tmp_path).read_installation() == an_installation()


def test_an_unused_data_directory_has_no_secrets_and_no_installation(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "nowhere")

    assert directory.read_secrets() is None
    assert directory.read_installation() is None
    assert directory.read_holder_pid() is None


def test_the_error_for_a_damaged_file_says_how_to_mend_it(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.secrets_path.write_text("{")

    (tmp_path / "installation.json").write_text("{")

    with pytest.raises(InstallationError, match=r"secrets\.json is damaged: .*\. Put it back from a backup"):
        directory.read_secrets()
    with pytest.raises(InstallationError, match=r"installation\.json is damaged: .*\. Remove it: "):
        directory.read_installation()


@pytest.mark.parametrize("name", ["lock", "secrets.json"])
def test_a_full_disk_is_reported_and_leaves_no_partial_file(tmp_path: Path, name: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", WRITES_WITHOUT_ROOM, tmp_path, name],
        capture_output=True,
        text=True,
        check=True,
    )

    assert result.stdout.startswith(f"Cannot write {tmp_path / name}: ")
    assert [path.name for path in tmp_path.iterdir()] == (["lock"] if name == "lock" else [])
