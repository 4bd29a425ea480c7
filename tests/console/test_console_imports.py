"""Only the control plane that serves the console imports it."""

import subprocess
import sys

MODULES = (
    "adloom.cli.main",
    "adloom.app.delivery",
    "adloom.app.worker",
    "adloom.app.control",
    "adloom.app.up.run",
)
# One process for all: each of them takes a second to import.
LOOK = f"""
import importlib, sys
for module in {MODULES}:
    importlib.import_module(module)
    if any(name.partition('.')[0] == 'nicegui' for name in sys.modules):
        sys.exit(module)
"""


def test_the_console_is_not_imported_before_it_is_served() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
