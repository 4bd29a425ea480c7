"""Why the winner of an auction pays what it pays, in a sentence."""

# pure

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

CENT: Final = 0.01
NEAR: Final = 0.00005  # Prices are recorded with four decimals.
RULE: Final = (
    "The winner pays a cent more than the second eCPM, at least the floor, and never more than its own eCPM."
)


def explain_price(auction: Mapping[str, Any], *, write: Callable[[float], str]) -> str:
    """Return why the price of a recorded auction is what it is; `write` formats prices.

    An account does not see other bids: then it is the rule.
    """
    if auction["finalPrice"] is None or auction["winningeCPM"] is None:
        return ""
    return next(_find_reasons(auction, write), RULE)


def _find_reasons(auction: Mapping[str, Any], write: Callable[[float], str]) -> Iterator[str]:
    final, own, floor = auction["finalPrice"], auction["winningeCPM"], auction["floorCpm"] or 0.0
    lost = [bid["ecpm"] for bid in auction["bids"] if bid["outcome"] == "lost"]
    is_known = None not in lost
    # Higher ones could not be paid for at that moment, and set no price.
    others = sorted((ecpm for ecpm in lost if ecpm is not None and ecpm <= own), reverse=True)
    for ecpm in others:
        if _is_equal(final, ecpm + CENT):
            yield f"A cent more than the second eCPM, which was {write(ecpm)}."
        if _is_equal(final, ecpm):
            yield f"As much as the second eCPM, which was {write(ecpm)}."
    if floor and _is_equal(final, floor):
        yield _explain_floor(floor, others, is_known=is_known, write=write)
    if _is_equal(final, own) and others and others[0] + CENT > own:
        yield f"The second eCPM, {write(others[0])}, was less than a cent below: the winner pays its own."
    if _is_equal(final, CENT) and is_known and not others and not floor:
        yield "Nobody else bid, and there is no floor: a cent is the lowest price."


def _explain_floor(
    floor: float, others: list[float], *, is_known: bool, write: Callable[[float], str]
) -> str:
    if others:
        return f"The floor, which is above the second eCPM ({write(max(others))}) and a cent."
    if is_known:
        return f"Nobody else reached the floor, so the winner pays the floor of {write(floor)}."
    return f"The floor of {write(floor)}."


def _is_equal(one: float, other: float) -> bool:
    return abs(one - other) < NEAR
