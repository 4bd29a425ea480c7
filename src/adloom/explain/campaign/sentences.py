"""The sentences about a campaign that does or does not deliver, and the names of the steps."""

from typing import Final

from adloom.explain.sentences import Reason

STATUS: Final = "status"
DATES: Final = "dates"
PLACEMENTS: Final = "placements"
SCHEDULE: Final = "schedule"
TARGETING: Final = "targeting"
CAPS: Final = "caps"
BUDGET: Final = "budget"
PACING: Final = "pacing"
REQUESTS: Final = "requests"
FREQUENCY: Final = "frequency"
FLOOR: Final = "floor"
AUCTIONS: Final = "auctions"
RIVALS: Final = "rivals"

IS_ACTIVE: Final = "The campaign is active."
WITHIN_DATES: Final = "It is within its dates."
HAS_PLACEMENTS: Final = "Its banners are assigned to placements that are switched on."
OPEN_NOW: Final = "It is the time of its banners."
FOR_EVERYBODY: Final = "It has no targeting rules: it is for every reader."
RIGHT_READERS: Final = "Readers that its rules want were there."
NO_CAPS: Final = "It has no caps."
UNDER_CAPS: Final = "It has had less than its caps allow."
HAS_BUDGET: Final = "Its budgets pay for more offers."
ON_PACE: Final = "Its pacing does not hold it back."
HAS_REQUESTS: Final = "Its placements were asked for."
NOT_SEEN_ENOUGH: Final = "Frequency caps have not kept it back."
OVER_FLOOR: Final = "Its bids reach the floors."
WINS: Final = "No other campaign has outbid it."
HAS_SLOTS: Final = "It has its share of the slots of its direct placements."
OTHERS_FIRST: Final = (
    "Readers that its rules want have looked at its direct placements, and have seen other banners."
)

DELIVERS: Final = "It delivers."
NOTHING_IN_THE_WAY: Final = "Nothing stands in its way: it is shown when the next reader comes."

UNASSIGNED: Final = Reason(
    "unassigned",
    "No banner of the campaign is assigned to a placement.",
    "Link the campaign to a placement, and assign a banner to it there.",
)
OTHER_READERS: Final = Reason(
    "targeting",
    "Readers were there that the campaign's targeting rules do not want.",
    "Widen the campaign's targeting rules, or switch some of them off.",
)
LACKED_BUDGET: Final = Reason(
    "budget",
    "There were auctions in which its budgets had nothing left to offer at that moment.",
    "Raise the budgets of the campaign or of its advertiser.",
)
WAITED_FOR_BUDGET: Final = Reason(
    "budget_pending",
    "There were auctions in which a delivery process waited for a piece of its budget.",
    "Nothing is wrong where it is seldom: processes ask by themselves. Where it lasts, see that the worker runs.",
)
NO_REQUESTS: Final = Reason(
    "no_requests",
    "Nobody has looked at its placements.",
    "See that the tag is on the pages, and that they name the right placements.",
)
