"""Finds exceptions that nobody handles: asyncio only logs them, and a test would pass."""

import logging


class StrayExceptions(logging.Handler):
    """Collects what asyncio reports of tasks and callbacks that failed with nobody waiting."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._found: list[str] = []
        logging.getLogger("asyncio").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._found.append(self.format(record))

    def take(self) -> list[str]:
        """Return what was found since the last call."""
        found, self._found = self._found, []
        return found
