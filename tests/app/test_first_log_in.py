"""The first admin: made once, and its password forgotten when it was replaced."""

from pathlib import Path

import msgspec
import pytest

from adloom.app.progress import StepProgress
from adloom.app.up.first_log_in import FirstLogIn, prepare_first_log_in, print_first_log_in
from adloom.core.ids import SystemIds
from adloom.runtime.installation import DataDirectory, make_secrets
from adloom.runtime.postgres import Pool
from tests.support.builders import NOON


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    directory = DataDirectory(tmp_path)
    directory.write_secrets(make_secrets())
    return directory


async def prepare(pool: Pool, directory: DataDirectory) -> FirstLogIn:
    return await prepare_first_log_in(pool, directory, url="http://c", now=NOON, ids=SystemIds())


def kept(directory: DataDirectory) -> str:
    secrets = directory.read_secrets()
    assert secrets is not None
    return secrets.admin_password


async def test_a_replaced_first_password_is_removed_from_the_file(
    pool: Pool, directory: DataDirectory
) -> None:
    first = await prepare(pool, directory)
    assert first.password == kept(directory) != ""
    assert (await prepare(pool, directory)).password == first.password

    await pool.execute("UPDATE users SET must_change_password = false")

    assert (await prepare(pool, directory)).password is None
    assert kept(directory) == ""


async def test_an_installation_whose_admin_is_gone_gets_a_new_first_password(
    pool: Pool, directory: DataDirectory
) -> None:
    secrets = directory.read_secrets()
    assert secrets is not None
    directory.write_secrets(msgspec.structs.replace(secrets, admin_password=""))

    first = await prepare(pool, directory)

    assert first.password == kept(directory) != ""


def test_password_and_link_are_printed_on_a_terminal_only(
    directory: DataDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    print_first_log_in(FirstLogIn(password="s3cret"), directory, StepProgress())
    elsewhere = capsys.readouterr().out
    print_first_log_in(
        FirstLogIn(password="s3cret", link="http://c/console/welcome?token=t", is_terminal=True),
        directory,
        StepProgress(),
    )
    on_a_terminal = capsys.readouterr().out

    assert "s3cret" not in elsewhere
    assert str(directory.secrets_path) in elsewhere
    assert "password: s3cret" in on_a_terminal
    assert "http://c/console/welcome?token=t" in on_a_terminal
