"""How far an import is."""

from enum import StrEnum

import msgspec


class ImportStep(StrEnum):
    """What an import does: it writes when all of its items are checked."""

    READING = "reading"
    CHECKING = "checking"
    WRITING = "writing"


class ImportProgress(msgspec.Struct):
    """The step of an import, and how many items are done; of how many is not known while it reads."""

    step: ImportStep = ImportStep.READING
    done: int = 0
    total: int = 0

    def begin(self, step: ImportStep, total: int) -> None:
        self.step, self.done, self.total = step, 0, total
