"""What a publisher sees of other accounts' ads on its placements: that something keeps one away, and no figure of it.

Dates, targeting values, caps, budgets, pace and bids belong to the advertiser. What the publisher decides itself, such
as its own switches and its consent, it sees in full.
"""

# pure

from typing import Final

from adloom.explain.reasons import OUTCOMES, REASONS, Reason
from adloom.serving.auction.bid_record import FLOOR
from adloom.serving.eligibility.caps import CLICK_CAP, IMPRESSION_CAP
from adloom.serving.index.rows import AssignmentStatus

PAID: Final = "caps_and_budgets"
INACTIVE: Final = "campaign_inactive"
_NOT_OFFERED: Final = Reason(INACTIVE, "The campaign does not offer this banner at the moment.")
_NOT_PAID: Final = Reason(PAID, "An advertiser's budget or cap leaves nothing for this ad at the moment.")
_OTHER_TIME: Final = Reason("campaign_dates", "It is not the time of the campaign.")

# A reason that is not here, or not among those shown in full, becomes `_NOT_OFFERED`.
_BY_NAME: Final = {
    AssignmentStatus.LINK_REQUESTED: Reason(
        AssignmentStatus.LINK_REQUESTED, "You have not accepted the campaign yet.", "Accept it under Requests."
    ),
    AssignmentStatus.LINK_REFUSED: Reason(
        AssignmentStatus.LINK_REFUSED, "You have refused the campaign.", "To show it, accept it under Requests."
    ),
    AssignmentStatus.BANNER_REFUSED: Reason(
        AssignmentStatus.BANNER_REFUSED,
        "You have refused the banner.",
        "To show it, accept it among the ads of the placement.",
    ),
    AssignmentStatus.SITE_MISSING: Reason(
        AssignmentStatus.SITE_MISSING,
        "It is not known on which site the placement is, and the campaign needs to know it.",
        "Set siteId of the placement.",
    ),
    AssignmentStatus.CAMPAIGN_UNDATED: _OTHER_TIME,
    "campaign_dates": _OTHER_TIME,
    FLOOR: Reason(FLOOR, REASONS[FLOOR].sentence, "To show it, lower floorCpm of the placement."),
    "slots_filled": Reason(
        "slots_filled", OUTCOMES["slots_filled"].sentence, "To show more at once, raise maxBanners of the placement."
    ),
    **dict.fromkeys(
        (IMPRESSION_CAP, CLICK_CAP, "daily_budget", "total_budget", "advertiser_budget", "pacing", "budget"),
        _NOT_PAID,
    ),
}  # fmt: skip
# The publisher's own switches.
_OWN: Final = frozenset(
    {"placement_inactive", "placement_not_direct", "no_partial_render", AssignmentStatus.WARMUP}
)
# The publisher sees the status of every campaign on its placements anyway, and nobody shows ads there for nothing; what
# to do about it is the advertiser's.
_WITHOUT_CHANGE: Final = frozenset(
    {
        AssignmentStatus.CAMPAIGN_DRAFT,
        AssignmentStatus.CAMPAIGN_PAUSED,
        AssignmentStatus.CAMPAIGN_ENDED,
        AssignmentStatus.CAMPAIGN_CANCELLED,
        AssignmentStatus.CAMPAIGN_DELETED,
        AssignmentStatus.SITE_BLOCKED,
        AssignmentStatus.NO_BID,
        "fallback_not_needed",
        "other_turn",
    }
)


def show_to_publisher(reason: Reason) -> Reason:
    """Return a reason as the placement's publisher may know it."""
    head, _, part = reason.name.partition(":")
    if reason.name in _OWN or reason.name.startswith("won"):
        return reason
    if reason.name in _WITHOUT_CHANGE:
        return Reason(reason.name, reason.sentence)
    if head == "targeting":
        rule = part.replace("_", " ")
        return Reason(reason.name, f"Its targeting rule about {rule} does not want this reader.")
    if head == "schedule":
        return Reason("schedule", "It is not the time of the banner.")
    return _BY_NAME.get(reason.name, _NOT_OFFERED)


def show_name_to_publisher(removed_by: str | None) -> str | None:
    """Return the name of what removed a creative, without which budget or pace it was."""
    found = _BY_NAME.get(removed_by or "")
    return PAID if found is _NOT_PAID else removed_by
