"""The user that the product's processes run as when root starts them."""

import os
import pwd
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from adloom.runtime.embedded.binaries import find_unprivileged_user, give_ownership
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.program import Program, build_command

PROBE_SECONDS_MAX = 60
# Checks that the user may read the modules that we have loaded, and the files and folders that processes need.
PROBE = """
import os, sys
for path in sys.argv[1:]:
    if not os.access(path, os.X_OK if os.path.isdir(path) else os.R_OK):
        sys.exit(f"{path} is closed to it")
"""
# Files of the operator that processes read themselves.
FILES = ("ADLOOM_GEOIP_FILE", "ADLOOM_DATA_CENTERS_FILE", "ADLOOM_FLEET_WEIGHTS")


class ChildUser(msgspec.Struct, frozen=True):
    """The user, None for the current one; and why it is root after all, if it is."""

    name: str | None = None
    why_root: str | None = None


def choose_child_user(variables: Mapping[str, str], folders: Sequence[Path]) -> ChildUser:
    """Choose an unprivileged user that can run our processes and reach what they need."""
    user = find_unprivileged_user()
    if user is None:
        return ChildUser()
    loaded = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    paths = [*map(str, folders), *(variables[name] for name in FILES if variables.get(name))]
    paths += filter(os.path.exists, sorted(loaded))
    probe = Program(
        name="probe",
        arguments=(sys.executable, "-I", "-S", "-c", PROBE, *paths),
        environment={
            name: value
            for name, value in variables.items()
            if name in {"PATH", "LANG"} or name.startswith("PYTHON")
        },
        user=user,
    )
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter
            build_command(probe),
            env=dict(probe.environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return ChildUser(why_root=f"{user} cannot run {sys.executable}: {error}")
    if done.returncode == 0:
        return ChildUser(user)
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return ChildUser(why_root=f"{user} cannot run {sys.executable}: {said[-1] if said else done.returncode}")


def choose_owner_of(variables: Mapping[str, str], data_directory: Path, folders: Sequence[Path]) -> ChildUser:
    """Choose the user of the children, and give it the folders that they write, which root may have made."""
    user = choose_child_user(variables, [data_directory, *(one for path in folders for one in path.parents)])
    for folder in folders:
        give_ownership(folder, user.name)
    return user


def run_as(user: str | None, children: Sequence[ChildSpec]) -> list[ChildSpec]:
    """Let children run as a user, with its own home: libraries look there for files, which must not be root's."""
    if user is None:
        return list(children)
    own = {"HOME": pwd.getpwnam(user).pw_dir, "USER": user, "LOGNAME": user}
    return [
        replace(
            child,
            program=replace(
                child.program,
                user=user,
                environment={
                    **{
                        name: value
                        for name, value in child.program.environment.items()
                        if not name.startswith("XDG_")
                    },
                    **own,
                },
            ),
        )
        for child in children
    ]
