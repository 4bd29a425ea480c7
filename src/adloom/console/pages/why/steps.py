"""The steps that candidates are removed by, in their order, and where each can be changed. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from adloom.console.components.funnel import Step
from adloom.console.words import why as words

WON: Final = "won"
LOST: Final = "lost"
STATUS: Final = "status"
# What an explanation calls a removal, by the step of the funnel.
STEP_OF: Final = {
    "no_bid": "bid",
    "placement_inactive": "status",
    "placement_not_direct": "status",
    "advertiser_deleted": "status",
    "campaign_deleted": "status",
    "campaign_draft": "status",
    "campaign_paused": "status",
    "campaign_ended": "status",
    "campaign_cancelled": "status",
    "campaign_undated": "status",
    "link_inactive": "status",
    "assignment_inactive": "status",
    "site_blocked": "status",
    "rule_unreadable": "status",
    "banner_deleted": "status",
    "banner_inactive": "status",
    "campaign_dates": "dates",
    "targeting": "targeting",
    "schedule": "schedule",
    "impression_cap": "caps",
    "click_cap": "caps",
    "daily_budget": "budget",
    "total_budget": "budget",
    "advertiser_budget": "budget",
    "pacing": "budget",
    "caps_and_budgets": "budget",
    "budget_pending": "budget",
    "not_held": "budget",
    "frequency_cap": "frequency",
    "frequency_unknown": "frequency",
    "floor": "floor",
    "no_partial_render": "slots",
}
DIRECT: Final = ("status", "dates", "targeting", "schedule", "caps", "budget", "slots")
AUCTION: Final = (
    "bid", "status", "dates", "targeting", "schedule", "caps", "budget", "frequency", "floor", "won",
)  # fmt: skip
ON_BANNER: Final = ("banner_", "schedule", "frequency_")
ON_PLACEMENT: Final = ("placement_", "no_partial_render")


def step_of(removed_by: str) -> str:
    """Name the step of the funnel that a removal belongs to."""
    return STEP_OF.get(removed_by.partition(":")[0], STATUS)


def steps(removed: Mapping[str, int], *, lost: int, won: int, is_auction: bool) -> list[Step]:
    """Make the funnel of removals by their names, of who lost and of who won."""
    order = AUCTION if is_auction else DIRECT
    taken = Counter[str]()
    for name, count in removed.items():
        taken[step_of(name)] += count
    taken[order[-1]] += lost
    left = sum(taken.values()) + won
    found = [Step(label=words.STEP_ALL, left=left)]
    for name in order:
        left -= taken[name]
        kind = "good" if name == order[-1] and left else ""
        found.append(Step(label=words.STEPS[name], left=left, note=words.STEP_NOTES[name], kind=kind))
    return found


def place_to_change(removed_by: str | None, outcome: str, *, is_auction: bool) -> str | None:
    """Name the kind of thing whose page changes a decision; none does for who is shown."""
    if outcome == WON:
        return None
    name = removed_by or ""
    if name.startswith(ON_BANNER):
        return "banner"
    if name.startswith(ON_PLACEMENT) or (outcome == LOST and not is_auction):
        return "placement"
    return "advertiser" if name in {"advertiser_budget", "advertiser_deleted"} else "campaign"


def recorded_reason(removed_by: str | None, outcome: str) -> str:
    """Say why, where only the name of a step is on record."""
    if outcome in {WON, LOST}:
        return words.REASONS[outcome]
    head, _, part = (removed_by or "").partition(":")
    sentence = words.REASONS.get(head, words.UNTOLD)
    return sentence.format(part=part.replace("_", " "))
