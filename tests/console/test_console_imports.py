"""Only the control plane that serves the console imports it."""

import subprocess
import sys

import pytest

LOOK = (
    "import sys, {module}; print(sorted(name for name in sys.modules if name.partition('.')[0] == 'nicegui'))"
)


@pytest.mark.parametrize(
    "module",
    [
        "adloom.cli.main",
        "adloom.app.delivery",
        "adloom.app.worker",
        "adloom.app.control",
        "adloom.app.up.run",
    ],
)
def test_the_console_is_not_imported_before_it_is_served(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK.format(module=module)], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
