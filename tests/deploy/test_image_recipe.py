"""The image without an engine: the commands of the first stage of the Containerfile, in a folder instead of a root."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adloom import VERSION
from adloom.runtime.installation import find_default_data_directory
from adloom.runtime.ports import find_port
from tests.docs.pages import ROOT
from tests.support.product import an_open_folder, status_of, wait_until

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


def test_the_data_directory_is_the_volume() -> None:
    words = next(rest for word, rest in instructions()[1] if word == "ENV").split()
    variables = dict(word.split("=", 1) for word in words)
    units = [file.read_text(encoding="utf-8") for file in (ROOT / "deploy" / "systemd").glob("*.service")]

    assert find_default_data_directory(variables, is_root=False) == Path("/var/lib/adloom")
    assert all("Environment=HOME=/var/lib/adloom XDG_DATA_HOME=/var/lib\n" in unit for unit in units)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with an_open_folder() as folder:
        yield folder


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(UV is None, reason="the recipe installs with uv, which is not on the path here")
def test_the_commands_of_the_first_stage_make_an_adloom_that_runs_as_nobody(
    open_folder: Path, database_url: str, redis_url: str
) -> None:
    root = open_folder / "root"
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

    user = NOBODY if os.geteuid() == 0 and find_python() == str(SYSTEM_PYTHON) else None
    program = root / "opt/adloom/bin/adloom"
    bare = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    said = subprocess.run(
        [program, "--version"], cwd="/", env=bare, user=user, capture_output=True, text=True, check=False
    )
    assert (said.stdout, said.stderr) == (f"adloom {VERSION}\n", "")

    # Nobody can write anywhere but to the data directory, as in a container with a read-only root.
    data = open_folder / "data"
    data.mkdir()
    data.chmod(0o777)
    port = find_port()
    servers = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "ADLOOM_TOKEN_SECRET": "a secret " * 5}
    delivery = subprocess.Popen(
        [program, "serve", "--port", str(port)],
        cwd="/",
        env={**bare, **servers, "XDG_DATA_HOME": str(data)},
        user=user,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(
            lambda: status_of(f"http://127.0.0.1:{port}/health/ready") == 200,
            seconds=60,
            what="delivery is ready",
        )
    finally:
        delivery.terminate()
    assert delivery.wait(30) == 0
    assert (data / "adloom" / "spool").is_dir()


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)
