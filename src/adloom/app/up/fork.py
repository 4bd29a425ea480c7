"""What the processes of `adloom up` and `adloom serve` are forked from; it imports little, to be started first.

Modules are loaded in this order. Control takes longest and goes on loading when it is forked; what needs less than
delivery, such as the schema upgrade, can be forked before it.
"""

from functools import cache
from typing import Final

from adloom.runtime.supervisor.forking import ForkServer

SERVE_MODULES: Final = ("adloom.app.delivery",)
UP_MODULES: Final = (
    *SERVE_MODULES,
    "adloom.app.control",
    "adloom.app.worker",
    "adloom.app.crawler",
    "adloom.app.classifier",
    "adloom.app.sample_traffic",
)


@cache
def start_for_up() -> ForkServer:
    """Start it, once in a process."""
    return ForkServer(UP_MODULES)


def start_for_serve() -> ForkServer:
    return ForkServer(SERVE_MODULES)
