"""`adloom sample` without a running product, and its status."""

from collections.abc import Callable
from pathlib import Path

import pytest

from adloom.app import sample_data
from adloom.cli import sample
from adloom.runtime.installation import DataDirectory, InstallationError
from adloom.sample.manifest import FILE_NAME, State
from tests.sample.builders import a_manifest


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path)


def print_status(directory: DataDirectory) -> list[str]:
    lines: list[str] = []
    sample_data.print_status(directory, lines.append)
    return lines


def test_the_status_without_a_sample_says_how_to_load_one(directory: DataDirectory) -> None:
    assert print_status(directory) == ["There is no sample. `adloom sample load` brings it."]


def test_the_status_lists_the_parts_of_a_loaded_sample(directory: DataDirectory) -> None:
    directory.write(FILE_NAME, a_manifest())

    assert print_status(directory)[0].startswith(
        "The sample is there, since 2026-11-15 12:00 UTC: 5 advertisers, "
    )


@pytest.mark.parametrize("state", [State.LOADING, State.REMOVING])
def test_the_status_names_an_interrupted_load_or_removal(directory: DataDirectory, state: State) -> None:
    directory.write(FILE_NAME, a_manifest(state=state))

    assert "broken off" in print_status(directory)[0]


def test_the_status_names_what_was_not_removed(directory: DataDirectory) -> None:
    directory.write(FILE_NAME, a_manifest(state=State.REMOVED))

    assert print_status(directory)[0].startswith("The sample is removed, but for what something else uses: ")


def test_removing_without_a_sample_does_nothing(directory: DataDirectory) -> None:
    lines: list[str] = []

    sample_data.remove({}, directory, lines.append)

    assert lines == ["There is no sample to remove."]


@pytest.mark.parametrize("command", [sample.status, sample.remove, sample.load])
def test_a_directory_on_which_nothing_was_started_is_named(
    tmp_path: Path, command: Callable[..., None]
) -> None:
    with pytest.raises(InstallationError, match=f"There is no installation in {tmp_path}/mistyped"):
        command(data_dir=tmp_path / "mistyped")


def test_loading_without_a_running_product_is_an_error(directory: DataDirectory) -> None:
    with pytest.raises(InstallationError, match="No `adloom up` runs on"):
        sample_data.load({}, directory, print)
