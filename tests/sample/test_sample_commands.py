"""`adloom sample` where there is nothing to do, or nobody to do it."""

from pathlib import Path

import pytest

from adloom.app import sample_data
from adloom.runtime.installation import DataDirectory, InstallationError
from adloom.sample.manifest import FILE_NAME, State
from tests.sample.builders import a_manifest


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path)


def said_status(directory: DataDirectory) -> list[str]:
    said: list[str] = []
    sample_data.print_status(directory, said.append)
    return said


def test_without_a_sample_it_says_how_to_get_one(directory: DataDirectory) -> None:
    assert said_status(directory) == ["There is no sample. `adloom sample load` brings it."]


def test_it_tells_what_there_is(directory: DataDirectory) -> None:
    directory.write(FILE_NAME, a_manifest())

    assert said_status(directory)[0].startswith(
        "The sample is there, since 2026-11-15 12:00 UTC: 5 advertisers, "
    )


@pytest.mark.parametrize("state", [State.LOADING, State.REMOVING])
def test_it_tells_that_something_was_broken_off(directory: DataDirectory, state: State) -> None:
    directory.write(FILE_NAME, a_manifest(state=state))

    assert "broken off" in said_status(directory)[0]


def test_it_tells_what_had_to_stay(directory: DataDirectory) -> None:
    directory.write(FILE_NAME, a_manifest(state=State.REMOVED))

    assert said_status(directory)[0].startswith("The sample is removed, but for what something else uses: ")


def test_there_is_nothing_to_remove_where_nothing_is(directory: DataDirectory) -> None:
    said: list[str] = []

    sample_data.remove({}, directory, said.append)

    assert said == ["There is no sample to remove."]


def test_a_product_that_does_not_run_is_named(directory: DataDirectory) -> None:
    with pytest.raises(InstallationError, match="No `adloom up` runs on"):
        sample_data.load({}, directory, print)
