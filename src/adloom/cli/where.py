"""`adloom where`: prints where an installation runs, so that scripts need not know its ports."""

# ruff: noqa: PLC0415 - as in main.py, a command imports what it needs when it runs

from enum import StrEnum
from typing import Annotated

import typer

from adloom.cli.options import DataDir, resolve_data_directory
from adloom.runtime.installation import Installation


class InstalledPart(StrEnum):
    """What can be asked for."""

    DELIVERY = "delivery"
    CONTROL = "control"
    WORKER = "worker"
    DATA = "data"


def where(
    part: Annotated[InstalledPart, typer.Argument(help="The address of a listener, or the data directory.")],
    *,
    data_dir: DataDir = None,
) -> None:
    """Print where an installation runs: the address of one of its listeners, or its data directory."""
    directory = resolve_data_directory(data_dir)
    installation = directory.require_installation()
    if directory.read_holder_pid() is None:
        typer.echo(f"The installation in {directory.path} does not run now: it ran there last.", err=True)
    typer.echo(directory.path if part is InstalledPart.DATA else find_address(installation, part))


def find_address(installation: Installation, part: InstalledPart) -> str:
    """Return the address to connect to on this machine."""
    from adloom.runtime.ports import format_url_host

    control_host = installation.control_host or installation.host
    host, port = {
        InstalledPart.DELIVERY: (installation.host, installation.delivery_port),
        InstalledPart.CONTROL: (control_host, installation.control_port),
        InstalledPart.WORKER: (control_host, installation.worker_port),
    }[part]
    return f"http://{format_url_host(host)}:{port}"
