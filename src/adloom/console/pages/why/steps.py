"""The steps that candidates are removed by, in their order, and where each can be changed. Pure."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from adloom.console import strings
from adloom.console.components.funnel import Step

REASONS: Final = {
    "not_held": "The budget had nothing to offer at that moment.",
    "budget_pending": "A delivery process waited for a piece of the campaign's budget, which the worker grants.",
    "caps_and_budgets": "A cap or a budget of the campaign left nothing.",
    "floor": "Its eCPM was under the floor of the placement.",
    "frequency_cap": "The reader had seen the ad as often as its frequency caps allow.",
    "frequency_unknown": "It was not known how often the reader had seen the ad, which has a frequency cap.",
    "pacing": "The campaign spreads its daily budget over the day, and was ahead of it.",
    "daily_budget": "The daily budget of the campaign was used up.",
    "total_budget": "The total budget of the campaign was used up.",
    "advertiser_budget": "The daily budget of the advertiser was used up.",
    "campaign_dates": "The campaign was outside its dates.",
    "impression_cap": "The campaign has had its impressions.",
    "click_cap": "The campaign has had its clicks.",
    "targeting": "Its rule about {part} does not want this reader.",
    "schedule": "It was not the time of the banner ({part}).",
    "won": "It had the highest eCPM.",
    "lost": "Another ad had a higher eCPM.",
}

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
    found = [Step(label="All candidates", left=left)]
    for name in order:
        left -= taken[name]
        kind = "good" if name == order[-1] and left else ""
        found.append(
            Step(label=strings.FUNNEL_STEPS[name], left=left, note=strings.FUNNEL_STEP_NOTES[name], kind=kind)
        )
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
        return REASONS[outcome]
    head, _, part = (removed_by or "").partition(":")
    sentence = REASONS.get(head, "The record does not say more.")
    return sentence.format(part=part.replace("_", " "))
