"""A test may fail once, and not twice."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONFTEST = """
from tests.support.reruns import Reruns

def pytest_configure(config):
    config.pluginmanager.register(Reruns())
"""
TESTS = """
runs = []

def test_passes():
    pass

def test_fails_once():
    runs.append(1)
    assert len(runs) > 1, "not yet"

def test_fails_always():
    raise AssertionError
"""


def test_a_test_that_fails_twice_has_failed_and_what_failed_once_is_shown(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_them.py").write_text(TESTS, encoding="utf-8")

    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            "/dev/null",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            tmp_path,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stdout
    assert "RERUN test_them.py::test_fails_once" in done.stdout.replace(f"{tmp_path}/", "")
    assert "AssertionError: not yet" in done.stdout
    assert "1 failed, 2 passed, 2 rerun" in done.stdout.splitlines()[-1]
