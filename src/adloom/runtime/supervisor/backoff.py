"""When a process that died is started again."""

# pure

FIRST_SECONDS = 0.2
SECONDS_MAX = 10.0
# One that lived this long had no trouble starting: its next death counts as the first.
LIVED_LONG_SECONDS = 10.0


def deaths_in_a_row(before: int, *, lived_seconds: float) -> int:
    """Count a death; a long life makes the earlier ones forgotten."""
    return 1 if lived_seconds >= LIVED_LONG_SECONDS else before + 1


def restart_delay_seconds(deaths: int) -> float:
    """Tell how long to wait after so many deaths in a row: not at all after the first, then twice as long each."""
    assert deaths >= 1
    if deaths == 1:
        return 0.0
    # The exponent is bounded too: a process may die for weeks.
    return min(SECONDS_MAX, FIRST_SECONDS * 2 ** min(deaths - 2, 16))
