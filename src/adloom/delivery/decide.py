"""Which candidates fill a placement's slots: a pure function of the index and the moment."""

from datetime import datetime

from adloom.delivery.index import Candidate, Placement


def decide(placement: Placement, *, now: datetime) -> list[Candidate]:
    """Fill the slots: those in their time, in order, the fallbacks last."""
    slots_max = placement.slots_max
    offers = [one for one in placement.primaries if one.opens_at <= now < one.closes_at][:slots_max]
    if len(offers) < slots_max and placement.fallbacks:
        in_time = [one for one in placement.fallbacks if one.opens_at <= now < one.closes_at]
        offers += in_time[: slots_max - len(offers)]
    return offers
