"""Only the control plane that serves the console imports it; no process imports what it never uses."""

import subprocess
import sys

import pytest

MODULES = {
    "adloom.app.crawler": ("trafilatura", "lxml", "cryptography"),
    "adloom.app.delivery": (
        "nicegui",
        "rich",
        "opentelemetry",
        "greenlet",
        "watchfiles",
        "yaml",
        "cryptography",
    ),
    "adloom.app.worker": ("nicegui", "rich", "opentelemetry", "pygments"),
    "adloom.cli.main": ("nicegui",),
    "adloom.app.control": ("nicegui", "psutil", "pydantic.v1"),
    "adloom.app.up.run": ("nicegui",),
    "adloom.console.mount": ("aiohttp", "requests", "valkey"),
}
# One process for all: each of them takes a second to import.
LOOK = f"""
import importlib, sys
for module, unused in {MODULES}.items():
    importlib.import_module(module)
    found = {{name for name in unused if sys.modules.get(name)}}
    if found:
        sys.exit(f"{{module}} imports {{found}}")
"""


@pytest.mark.slow
def test_no_process_imports_what_it_does_not_use() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
