"""Every plan on the page about capacity is what its command prints, with the coefficients of the package."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adloom.cli.main import app
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "guide" / "capacity.md"
PLAN = re.compile(
    r"^```sh\nuv run (adloom capacity [^\n]*)\n```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize(("command", "printed"), PLAN.findall(PAGE.read_text(encoding="utf-8")))
def test_a_plan_of_the_page_is_what_its_command_prints(
    command: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    done = CliRunner().invoke(app, shlex.split(command)[1:])

    assert done.exit_code == 0
    assert done.stdout == printed


def test_the_page_goes_from_a_million_to_ten_billion() -> None:
    commands = [command for command, _ in PLAN.findall(PAGE.read_text(encoding="utf-8"))]

    assert [command.split()[3] for command in commands] == ["1e6", "1e7", "1e8", "1e9", "1e10"]
