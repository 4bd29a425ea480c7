"""Routes that the framework reads when they are first used, not while the process starts.

For each it looks at the handler's parameters and answer, which takes a millisecond and more; there are over two hundred,
and few of them are asked for in the minute after a start.
"""

import threading
from collections.abc import Callable, Collection
from typing import Any, Final

from fastapi.routing import APIRoute
from starlette.routing import compile_path

# Requests read routes on the event loop, the description in a thread. Reentrant: reading asks for what is not read yet.
_READING: Final = threading.RLock()


class LateRoute(APIRoute):
    """A route that knows its address from the beginning, and the rest with the first request or description."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        methods: Collection[str] | None = None,
        name: str | None = None,
        **options: Any,  # noqa: ANN401 - the framework's own
    ) -> None:
        self.path, self.endpoint = path, endpoint
        self.name = name or endpoint.__name__
        self.methods = {method.upper() for method in methods or ("GET",)}
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._options = options

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the framework knows of a route
        """Let the framework read the route; asked for only what it has not."""
        with _READING:
            options = self.__dict__.pop("_options", None)
            if options is not None:
                super().__init__(self.path, self.endpoint, methods=self.methods, name=self.name, **options)
        if options is None and name not in self.__dict__:
            raise AttributeError(name)
        return getattr(self, name)
