"""What a drill returns, or by which figure it is lost."""

Figures = dict[str, float]


class DrillError(Exception):
    """A drill that is lost; the message says by which figure."""


class NotPossibleError(Exception):
    """A drill that this machine or user cannot run; the message says why."""


def require(*, is_so: bool, what: str) -> None:
    if not is_so:
        raise DrillError(what)
