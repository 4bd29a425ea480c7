import tomllib

import pytest

from scripts.pin import pins_in, with_pins

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
