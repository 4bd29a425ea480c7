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


def report_ok(name: str, detail: str) -> Finding:
    return Finding(name, FindingState.OK, detail)


def warn(name: str, detail: str, remedy: str) -> Finding:
    """Report something that needs attention, but not at once."""
    return Finding(name, FindingState.WARN, detail, remedy)


def fail(name: str, detail: str, remedy: str) -> Finding:
    """Report something that does not work."""
    return Finding(name, FindingState.FAIL, detail, remedy)


def warn_not_running(name: str) -> Finding:
    """Report what cannot be checked because the installation is stopped."""
    return warn(name, "not running", "start it with `adloom up`")


def grade(name: str, detail: str, remedy: str, *, is_bad: bool, is_good: bool) -> Finding:
    """Report a figure: a failure where it is bad, a warning where it is not good either."""
    if is_good:
        return report_ok(name, detail)
    return fail(name, detail, remedy) if is_bad else warn(name, detail, remedy)
