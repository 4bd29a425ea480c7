"""The image without an engine: the commands of the first stage of the Containerfile, in a folder instead of a root."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from adloom import VERSION
from tests.docs.pages import ROOT

RECIPE = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
# Installed in the stage by the first command.
UV = shutil.which("uv")
# Root's own Python is often closed to other users.
SYSTEM_PYTHON = Path("/usr/bin/python3")
NOBODY = 65_534


def instructions() -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage, with continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", RECIPE)
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    stages: list[list[tuple[str, str]]] = []
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest))
    return stages


def find_python() -> str:
    if SYSTEM_PYTHON.exists():
        said = subprocess.run([SYSTEM_PYTHON, "--version"], capture_output=True, text=True, check=True).stdout
        if said.split()[1].startswith("3.11."):
            return str(SYSTEM_PYTHON)
    return sys.executable


def test_the_last_stage_runs_as_nobody_special_and_has_what_the_first_made() -> None:
    first, last = instructions()

    assert ("USER", "10001:10001") in last
    assert ("COPY", "--from=build /opt/adloom /opt/adloom") in last
    assert ("ENTRYPOINT", '["adloom"]') in last
    assert ("STOPSIGNAL", "SIGTERM") in last
    copied = [source for word, rest in first if word == "COPY" for source in rest.split()[:-1]]
    assert [source for source in copied if not (ROOT / source).exists()] == []
    ignored = (ROOT / "deploy" / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert {f"!{source}" for source in copied} <= set(ignored)


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(UV is None, reason="the recipe installs with uv, which is not on the path here")
def test_the_commands_of_the_first_stage_make_an_adloom_that_runs_as_nobody(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    environment = {**os.environ, "UV_PYTHON": find_python(), "UV_LINK_MODE": "hardlink"}
    environment.pop("VIRTUAL_ENV", None)
    environment.pop("UV_COMPILE_BYTECODE", None)  # It takes long, and changes nothing about what runs.
    folder = root
    ran = 0
    for word, rest in instructions()[0]:
        if word == "WORKDIR":
            folder = root / rest.lstrip("/")
            folder.mkdir(parents=True)
        elif word == "COPY":
            *sources, target = shlex.split(rest)
            for source in sources:
                _copy(ROOT / source, folder / target)
        elif word == "RUN" and "pip install --no-cache-dir uv" not in rest:
            command = re.sub(r"(?<![\w.])/(opt|tmp)/", rf"{root}/\1/", rest)
            done = subprocess.run(
                ["/bin/sh", "-ec", command],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            ran += 1
    assert ran == 4

    for path in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        path.chmod(0o755)
    is_root = os.geteuid() == 0 and find_python() == str(SYSTEM_PYTHON)
    said = subprocess.run(
        [root / "opt/adloom/bin/adloom", "--version"],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        user=NOBODY if is_root else None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.stdout, said.stderr) == (f"adloom {VERSION}\n", "")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)
