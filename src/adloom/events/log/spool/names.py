"""What the files of the spool are called: by whom, in which life, and which of its files."""

import re
from typing import Final
from uuid import UUID

import msgspec

DAMAGED: Final = ".damaged"  # Added to the name of a file that could not be read whole.

_NAME: Final = re.compile(r"([\w-]+)\.([0-9a-f]{32})\.(\d{6,})\.spool")


class FileName(msgspec.Struct, frozen=True, order=True):
    """One file's name; they are ordered as they were written, as far as the lives' ids are."""

    owner: str
    life: UUID
    number: int

    def __str__(self) -> str:
        return f"{self.owner}.{self.life.hex}.{self.number:06}.spool"


def owner_of(process: str) -> str:
    """Give a process's name as it stands in file names."""
    return re.sub(r"[^\w-]", "_", process) or "_"


def parsed(name: str) -> FileName | None:
    """Read a file's name; None where it is not one of ours to drain."""
    match = _NAME.fullmatch(name)
    return match and FileName(match[1], UUID(match[2]), int(match[3]))
