import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adloom.cli.main import app
from adloom.ops.capacity.coefficients_file import CoefficientsFileError, find_own_file, read_coefficients


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["capacity", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_capacity_says_machines_bottleneck_and_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    traffic = ["--requests-per-day", "10e9", "--campaigns", "1e5", "--sites", "1e5"]

    said = run(*traffic, "--price-core-hour", "0.04")
    plan = json.loads(run(*traffic, "--json"))

    assert said.startswith("10 billion requests a day: ")
    assert "bottleneck: " in said
    assert "a million requests" in said
    assert plan["plan"]["installations"] > 1
    assert plan["coefficients"]["commit"]


def test_coefficients_come_from_a_file_this_machine_or_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    shipped = read_coefficients(None)
    own = find_own_file({"XDG_STATE_HOME": str(tmp_path)})
    own.parent.mkdir(parents=True)
    text = json.loads(run("--json"))["coefficients"]
    own.write_text(json.dumps({**text, "commit": "of this machine"}))
    named = tmp_path / "named.json"
    named.write_text(json.dumps({**text, "commit": "of another"}))

    assert read_coefficients(None).commit == "of this machine" != shipped.commit
    assert read_coefficients(named).commit == "of another"
    named.write_text("{}")
    with pytest.raises(CoefficientsFileError, match=r"named\.json has no coefficients"):
        read_coefficients(named)


def test_shares_of_more_than_everything_are_refused() -> None:
    done = CliRunner().invoke(app, ["capacity", "--auction-share", "0.8", "--contextual-share", "0.3"])

    assert done.exit_code == 2
    assert "more than 1 together" in " ".join(done.output.replace("│", " ").split())
