"""What libraries read or compute again for each client, shared by all clients of a test process.

It took longer than all else of a control plane's start.
"""

import functools
import os
import ssl
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import bullmq.redis_connection
import certifi
import redis.asyncio
import redis.utils
from redis.client import CaseInsensitiveDict
from redis.commands.core import AsyncScript


def share_what_libraries_read() -> None:
    share_certificates()
    bullmq.redis_connection.loadScript = functools.cache(bullmq.redis_connection.loadScript)
    redis.utils.get_lib_version = functools.cache(redis.utils.get_lib_version)  # It parses a file for each.
    share_script_hashes()
    fill_callbacks_at_once()
    # Clients look for this package some times in each request, and walk over all folders because there is none.
    cast("dict[str, ModuleType | None]", sys.modules).setdefault("sniffio", None)


def share_certificates() -> None:
    make, share = ssl.create_default_context, functools.cache(ssl.create_default_context)

    # A machine behind a proxy names a file of its own.
    places = [("cafile", certifi.where())]
    places += [
        ("cafile", os.environ.get("SSL_CERT_FILE", "")),
        ("capath", os.environ.get("SSL_CERT_DIR", "")),
    ]
    public = [{name: path} for name, path in places if path]

    def make_context(*arguments: Any, **named: Any) -> ssl.SSLContext:
        return share(**named) if not arguments and named in public else make(*arguments, **named)

    ssl.create_default_context = make_context


def share_script_hashes() -> None:
    """Hash each of the forty scripts of a queue once, not for each of a control plane's four queues."""
    make = redis.asyncio.Redis.register_script
    hashes: dict[Any, str] = {}

    def register_script(self: Any, script: Any) -> AsyncScript:
        if script not in hashes:
            hashes[script] = make(self, script).sha
        made = AsyncScript.__new__(AsyncScript)
        made.registered_client, made.script, made.sha = self, script, hashes[script]
        return made

    redis.asyncio.Redis.register_script = register_script


def fill_callbacks_at_once() -> None:
    """Fill the table of a client's 170 commands in one call, not by one for each: each test has some clients."""

    def fill(self: CaseInsensitiveDict, data: dict[str, Any]) -> None:
        dict[str, Any].__init__(self, zip(map(str.upper, data), data.values(), strict=True))

    CaseInsensitiveDict.__init__ = fill


def share_signatures_of_handlers() -> None:
    """Look once at the code of a handler of the console: NiceGUI does for each of a page's thousand elements."""
    from nicegui import helpers  # noqa: PLC0415 - only tests of the console need it

    look = cast("Callable[[Callable[..., Any]], bool]", helpers.expects_arguments)
    found: dict[tuple[CodeType, bool, int], bool] = {}

    def expects_arguments(handler: Callable[..., Any]) -> bool:
        function = handler.__func__ if isinstance(handler, MethodType) else handler
        if not isinstance(function, FunctionType) or function.__dict__:  # It may be wrapped.
            return look(handler)
        key = function.__code__, function is not handler, len(function.__defaults__ or ())
        if key not in found:
            found[key] = look(handler)
        return found[key]

    helpers.expects_arguments = expects_arguments
