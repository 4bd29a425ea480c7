"""Words of the campaigns' pages."""

from typing import Final

CAMPAIGNS: Final = "Campaigns"
CAMPAIGN: Final = "Campaign"
NOUN: Final = "campaign"
NOTE: Final = "A purpose with dates, a budget and a bid; it shows its banners on placements."
NEW: Final = "New campaign"
SEARCH: Final = "Search by name or description"
EMPTY: Final = "No campaigns yet"
EMPTY_NOTE: Final = (
    "A campaign brings a banner to a placement. The guided path makes your first one in a few steps."
)
GUIDE: Final = "Guide me"
STATUSES: Final = {
    "draft": "Draft",
    "scheduled": "Scheduled",
    "active": "Active",
    "paused": "Paused",
    "ended": "Ended",
    "cancelled": "Cancelled",
}
DATES: Final = "Dates"
BID: Final = "Bid"
DAILY_BUDGET: Final = "Daily budget"
TOTAL_BUDGET: Final = "Total budget"
FROM_NOW: Final = "from the start"
OPEN_END: Final = "no end"
DATES_SHOWN: Final = "{first} → {last}"
BID_SHOWN: Final = {"cpm": "{amount} CPM", "cpc": "{amount} CPC"}
NO_BID: Final = "none"

TAB_BANNERS: Final = "Banners and placements"
WHY: Final = "Why does it not deliver?"
WHY_LINK: Final = "/console/why?campaign={campaign_id}"

STARTS_AT: Final = "Starts"
ENDS_AT: Final = "Ends"
DATES_HINT: Final = "In the campaign's time zone. Empty: no limit."
ENDS_BEFORE: Final = "must be after the start"
BID_TYPE: Final = "Pays for"
BID_TYPES: Final = {"cpm": "A thousand impressions (CPM)", "cpc": "A click (CPC)"}
BID_AMOUNT: Final = "Bid"
BID_HINT: Final = "Empty: it costs nothing, and takes part in no auction."
PACING: Final = "Pacing"
PACINGS: Final = {"Smooth": "Smooth: over the whole day", "Accelerated": "Accelerated: as fast as it can"}
DAILY_HINT: Final = "Empty: no limit."
IMPRESSION_CAP: Final = "Impressions in all, at most"
CLICK_CAP: Final = "Clicks in all, at most"
ADVERTISER_NAME: Final = "Advertiser's name on the contract"
ADVERTISER_CONTACT: Final = "Contact"
CONTRACT_REF: Final = "Contract"
ABOUT: Final = "What it is"
WHEN: Final = "When it runs"
MONEY: Final = "What it may cost"
LIMITS: Final = "Limits and contract"
MADE: Final = "«{name}» is made. It is a draft: give it a placement and a banner, then activate it."

TODAY: Final = "Budget today"
TODAY_NOTE: Final = "Day {day}"
SPENT: Final = "Spent"
HELD: Final = "Held"
HELD_HINT: Final = (
    "The price of offers that are out and not yet seen or clicked. It comes back if nobody does."
)
REMAINING: Final = "Remaining"
PROJECTED: Final = "Projected"
PROJECTED_HINT: Final = "Spent at the end of the day, if it goes on like this."
PACE: Final = "Pace"
PACE_ON_LINE: Final = "{share} of the line"
PACE_NONE: Final = "as fast as it can"
SPENT_IN_ALL: Final = "Spent in all"
OF_BUDGET: Final = "of {budget}"
WITHOUT_BUDGET: Final = "without a limit"
RESULTS: Final = "The last 14 days"
RESULTS_NOTE: Final = "{impressions} impressions, {clicks} clicks, {ctr} CTR"
IMPRESSIONS: Final = "Impressions"
CLICKS: Final = "Clicks"
FACTS: Final = "At a glance"
LOOK: Final = "What readers see"
LOOK_NOTE: Final = "{banner} on {placement}"

WHAT_IS_MISSING: Final = "What it still needs"
NEEDS_BANNER: Final = "No banner is assigned to a placement yet, so there is nothing to show."
NEEDS_ACTIVATION: Final = "It is a draft. Activate it, and it runs from that moment on."
TO_BANNERS: Final = "Choose placement and banner"

MOVES: Final = {
    "activate": "Activate",
    "resume": "Resume",
    "schedule": "Schedule",
    "unschedule": "Back to draft",
    "pause": "Pause",
    "end": "End",
    "cancel": "Cancel it",
}
MOVE_TITLES: Final = {
    "activate": "Activate «{name}»?",
    "resume": "Resume «{name}»?",
    "schedule": "Schedule «{name}»?",
    "unschedule": "Make «{name}» a draft again?",
    "pause": "Pause «{name}»?",
    "end": "End «{name}» for good?",
    "cancel": "Cancel «{name}» for good?",
}
CONSEQUENCES: Final = {
    "activate": (
        "Its banners can be shown within two seconds, between its dates and within its budgets. "
        "From then on impressions or clicks cost its bid."
    ),
    "resume": (
        "Its banners can be shown again within two seconds. It goes on with what is left of today's budget; "
        "what was held and not seen meanwhile has come back."
    ),
    "schedule": (
        "It becomes active by itself at its start. Until then nothing is shown and nothing is spent, and it can "
        "become a draft again."
    ),
    "unschedule": "It will not start by itself any more. Its dates stay, and nothing is lost.",
    "pause": (
        "No new offers within two seconds, everywhere. Offers that are already on readers' pages still count and are "
        "charged when they are seen or clicked; what nobody sees is held for a few minutes and then comes back. "
        "The budget that is left stays, and you can resume at any time."
    ),
    "end": (
        "No new offers within two seconds. Offers that are already out still count and are charged; what is held and "
        "not seen comes back within minutes. An ended campaign never runs again, but stays in reports. "
        "To stop for a while, pause it instead."
    ),
    "cancel": (
        "It never runs again. Where it ran already, offers that are out still count and are charged, what is held and "
        "not seen comes back, and reports keep it."
    ),
}
DELETE_TITLE: Final = "Delete «{name}»?"
DELETE_CONSEQUENCE: Final = (
    "No new offers within two seconds, and it leaves the lists. Offers that are already out still count and are charged, "
    "and what is held and not seen comes back. Reports keep it. You can undo this: restored, it has the status "
    "that it has now, so an active campaign runs again at once."
)
MOVED: Final = "«{name}» is {status}."
START_MISSING: Final = "It has no start. Say when it shall begin:"

ADD_PLACEMENT: Final = "Add a placement"
PLACEMENT: Final = "Placement"
PLACEMENT_ID: Final = "Id of the placement"
PLACEMENT_ID_HINT: Final = "The publisher or the house tells you the id."
ADD_BANNER: Final = "Add a banner"
BANNER: Final = "Banner"
NOTHING_ASSIGNED: Final = "No banner is assigned here, so nothing of this campaign is shown."
NO_PLACEMENTS: Final = "No placements yet"
NO_PLACEMENTS_NOTE: Final = "Choose where this campaign may appear. Then choose the banners to show there."
ASSIGNMENT: Final = "How it is shown"
ORDER: Final = "Order"
ORDER_HINT: Final = "Small ones first."
WEIGHT: Final = "Weight"
WEIGHT_HINT: Final = "Large ones first."
FALLBACK: Final = "Fallback: fills a slot only where nothing else does"
FALLBACK_PRIORITY: Final = "Order among fallbacks"
ASSIGNMENT_ACTIVE: Final = "On"
OVERRIDES: Final = "Say something else here than the banner does"
OVERRIDE_HEADLINE: Final = "Headline here"
OVERRIDE_SUBHEADLINE: Final = "Subheadline here"
OVERRIDE_CTA_LABEL: Final = "Button here"
OVERRIDE_CTA_URL: Final = "Leads here to"
TRANSITION: Final = "Slides in within milliseconds"
FIRST_SHOWN: Final = "shown first"
IS_FALLBACK: Final = "fallback"
IS_OFF: Final = "off"
IS_OVERRIDDEN: Final = "own words"
PLACEMENT_OFF: Final = "The placement is switched off."
LINK_ACTIVE: Final = "This campaign uses the placement"
REMOVE_PLACEMENT: Final = "Remove the placement"
REMOVE_PLACEMENT_TITLE: Final = "Take «{placement}» from this campaign?"
REMOVE_PLACEMENT_NOTE: Final = (
    "Its banners are taken from there too, with their order, weights and own words. Nothing of this campaign is "
    "offered there within two seconds; offers that are out still count. This cannot be undone."
)
REMOVE_BANNER_TITLE: Final = "Take «{banner}» from «{placement}»?"
REMOVE_BANNER_NOTE: Final = (
    "It is not offered there within two seconds. The banner itself stays, but its order, weight and own words on this "
    "placement are gone."
)
WEIGHT_SHARE: Final = "order {order} · weight {weight}"
EDIT: Final = "Change"

CALENDAR_NOTE: Final = (
    "When dates and conditions about hours and days let it run. Its banners may have schedules of their own."
)
BANNER_SCHEDULES: Final = "Schedules of its banners"
