"""What one check has found."""

from enum import StrEnum

import msgspec


class FindingState(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at; whatever is not well says what to do."""

    name: str
    state: FindingState
    detail: str
    remedy: str = ""

    def __post_init__(self) -> None:
        assert self.state is FindingState.OK or self.remedy, "a finding that is not well says what to do"


NOT_RUNNING = "not running"
START_IT = "start it with `adloom up`"


def ok(name: str, detail: str) -> Finding:
    return Finding(name, FindingState.OK, detail)


def warn(name: str, detail: str, remedy: str) -> Finding:
    """Report something that needs attention, but not at once."""
    return Finding(name, FindingState.WARN, detail, remedy)


def fail(name: str, detail: str, remedy: str) -> Finding:
    """Report something that does not work."""
    return Finding(name, FindingState.FAIL, detail, remedy)


def not_running(name: str) -> Finding:
    """Report what cannot be checked because the installation is stopped."""
    return warn(name, NOT_RUNNING, START_IT)
