"""Lets libraries do without what they import only in case it is there, and what we never use of them.

It was a fifth of the time in which a process or a command starts, and megabytes of each. `adloom/__init__.py`
installs it, before anything else is imported.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

UNUSED: Final = {
    "structlog": ("rich", "greenlet"),  # coloured tracebacks, and values by green thread
    # Measurements of its own, where the web framework may have loaded the API but not the SDK; and OCSP, which its
    # asynchronous client does not know.
    "redis": ("opentelemetry", "opentelemetry.sdk", "cryptography"),
    "httpx": ("rich", "pygments"),  # its command
    "mako.exceptions": ("pygments",),  # coloured errors of templates, which migrations have none of
    "uvicorn": ("watchfiles",),  # starting again when a file of the code changes
    "ua_parser": ("yaml",),  # rules of one's own
    "socketio": ("aiohttp", "requests", "valkey"),  # its clients, and several servers
}
# What the web framework asks of each route, whether models of an older version are in it; it does without.
NEVER_USED: Final = ("pydantic.v1",)


class LeanLoader(Loader):
    """Loads a library while others cannot be imported."""

    def __init__(self, loader: Loader, unused: Sequence[str]) -> None:
        self._loader = loader
        self._unused = unused

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        absent = [name for name in self._unused if name not in sys.modules]
        # As Python marks a module that cannot be imported; the type of `sys.modules` does not know it.
        sys.modules.update(dict.fromkeys(absent))  # pyright: ignore[reportCallIssue, reportArgumentType]
        try:
            self._loader.exec_module(module)
        finally:
            for name in absent:
                del sys.modules[name]


class LeanFinder(MetaPathFinder):
    """Finds the libraries that have something to do without."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in UNUSED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LeanLoader(spec.loader, UNUSED[fullname])
        return spec


def install_lean_imports() -> None:
    sys.meta_path.insert(0, LeanFinder())
    sys.modules.update(dict.fromkeys(NEVER_USED))  # pyright: ignore[reportCallIssue, reportArgumentType]
