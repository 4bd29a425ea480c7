"""Words of «Why?»: what becomes of a request, and of a campaign."""

from typing import Final

TITLE: Final = "Why?"
NOTE: Final = "Who would be shown to a reader, who was in an auction, and what keeps a campaign back."
VIEWS: Final = "Ways to ask"
FOR_A_READER: Final = "For a reader"
AN_AUCTION: Final = "A recorded auction"
A_CAMPAIGN: Final = "A campaign"

PLACEMENT: Final = "Placement"
DEVICE: Final = "Device"
COUNTRY: Final = "Country"
LANGUAGE: Final = "Language"
SEGMENT: Final = "Segment"
REFERRER: Final = "Came from"
REFERRER_HINT: Final = "news.example.com"
LOGGED_IN: Final = "Logged in"
NEW_VISITOR: Final = "New visitor"
USER: Final = "User id"
USER_HINT: Final = "For frequency caps, in auctions."
AT: Final = "At (UTC)"
AT_HINT: Final = "Counts and budgets stand as now."
EXPLAIN: Final = "Explain"
EITHER: Final = "Either"
YES: Final = "Yes"
NO: Final = "No"
READER: Final = "The reader"
COPY_LINK: Final = "Copy link"
LINK_COPIED: Final = "The address of this question is copied."

CHOOSE: Final = "Choose a placement"
CHOOSE_NOTE: Final = "Say who asks, and see step by step which banners are left, and why the others are not."
CHOOSE_AUCTION: Final = "Which auction?"
CHOOSE_AUCTION_NOTE: Final = (
    "Every auction of the last days is on record. Take one from the list, or enter its id."
)
TO_AUCTIONS: Final = "To the auctions"
AUCTION_ID: Final = "Id of the auction"
CHOOSE_CAMPAIGN: Final = "Which campaign does not deliver?"
CHOOSE_CAMPAIGN_NOTE: Final = (
    "Every step between it and a reader is looked at, with what happened in the last hour."
)
CAMPAIGN: Final = "Campaign"
NO_CANDIDATES: Final = "Nothing is assigned to this placement"
NO_CANDIDATES_NOTE: Final = "Link a campaign to it, and assign a banner to it there."
TO_CAMPAIGNS: Final = "To the campaigns"

FUNNEL: Final = "From all candidates to what is shown"
FUNNEL_AUCTION: Final = "From all candidates to the winner"
CANDIDATES: Final = "Candidates"
CONTEXT: Final = "As the rules see the reader"
BANNER: Final = "Banner"
OUTCOME: Final = "Outcome"
REASON: Final = "Why"
ECPM: Final = "eCPM"
BID: Final = "Bid"
TO_WIN: Final = "To win"
CTR: Final = "CTR"
QUALITY: Final = "Quality"
WON: Final = "shown"
WON_AUCTION: Final = "won"
LOST: Final = "lost"
REMOVED: Final = "removed"
SOMEBODY: Final = "somebody else's"
NOBODY_IS_SHOWN: Final = "Nobody would be shown to this reader."
ONE_IS_SHOWN: Final = "«{title}» would be shown to this reader."
SEVERAL_ARE_SHOWN: Final = "{count} banners would be shown to this reader."
WINS_AT: Final = "«{title}» would win, and pay {price} per thousand impressions."
NOBODY_WINS: Final = "Nobody would win this auction."
ASK_NOW: Final = "Ask the same now"
OPEN_AUCTION: Final = "The auction in full"
CUT: Final = "At most 256 bids of an auction are recorded one by one; the funnel counts all."
UNTOLD: Final = "The record does not say more."
RECORDED_AT: Final = "Held {moment}"

STEP_ALL: Final = "All candidates"
STEPS: Final = {
    "bid": "Bid something",
    "status": "Switched on",
    "dates": "Within their dates",
    "targeting": "For this reader",
    "schedule": "Within their schedule",
    "caps": "Under their caps",
    "budget": "With budget left",
    "frequency": "Not seen too often",
    "floor": "Over the floor",
    "slots": "Have a slot",
    "won": "Highest bid",
}
STEP_NOTES: Final = {
    "bid": "The campaign bids nothing.",
    "status": "Paused, draft, ended or switched off.",
    "dates": "Before the start or after the end of the campaign.",
    "targeting": "Targeting rules that do not want this reader.",
    "schedule": "It is not the time of the banner.",
    "caps": "The campaign has had all that its caps allow.",
    "budget": "A budget, or the pace of a day, leaves nothing for one more offer, or has not been granted yet.",
    "frequency": "The reader has seen the ad often enough.",
    "floor": "The eCPM is under the floor of the placement.",
    "slots": "Banners that come before fill all slots, or a fallback is not needed.",
    "won": "Others have a higher eCPM.",
}
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
OPEN: Final = {
    "campaign": "Open the campaign",
    "banner": "Open the banner",
    "placement": "Open the placement",
    "advertiser": "Open the advertiser",
}

CHECKS: Final = {
    "status": "Status",
    "dates": "Dates",
    "placements": "Placements",
    "schedule": "Schedule",
    "targeting": "Targeting",
    "caps": "Caps",
    "budget": "Budget",
    "pacing": "Pacing",
    "requests": "Readers",
    "frequency": "Frequency",
    "floor": "Floors",
    "auctions": "Auctions",
    "rivals": "Other banners",
}
CHECK_STATES: Final = {"ok": "passes", "limits": "holds back", "stops": "stops"}
HOW_IT_GOES: Final = "How does «{name}» deliver?"
CONTEXT_NAMES: Final = {
    "device": "Device",
    "country": "Country",
    "language": "Language",
    "loggedIn": "Logged in",
    "newVisitor": "New visitor",
    "referrerDomain": "Came from",
    "segment": "Segment",
    "hour": "Hour at the placement",
    "day": "Day at the placement",
}
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
UNKNOWN: Final = "unknown"
WHY_NOT: Final = "Why does «{name}» not deliver?"
SINCE: Final = "Since {moment}"
STEP_BY_STEP: Final = "Step by step"
IMPRESSIONS: Final = "Impressions"
CLICKS: Final = "Clicks"
AUCTIONS_HELD: Final = "Auctions it could win"
AUCTIONS_WON: Final = "Auctions won"
OF_ALL: Final = "{share} of all"
IN_AUCTIONS: Final = "In the auctions since then"
HELD: Final = "Held"
CONSIDERED: Final = "It was a candidate"
CONSIDERED_NOTE: Final = "Not a candidate: not running then, or without a bid."
LOST_BY: Final = "Where it lost it was worth {own} on average; who won there, {theirs}."
SHARE: Final = "{passed} of {of}"
LOOK_AT_READER: Final = "Look at one reader"
ITS_PLACEMENTS: Final = "Ask for a reader of one of its placements"
NO_PLACEMENTS: Final = "It has no placements yet."
