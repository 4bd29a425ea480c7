"""Words that the pages of the catalog share."""

from typing import Final

NAME: Final = "Name"
DESCRIPTION: Final = "Description"
STATUS: Final = "Status"
CREATED: Final = "Created"
CHANGED: Final = "Changed"
ADVERTISER: Final = "Advertiser"
PUBLISHER: Final = "Publisher"
SITE: Final = "Site"
SOURCE: Final = "Source"
SOURCES: Final = {"internal": "Own", "sponsored": "Sponsored", "affiliate": "Affiliate", "system": "System"}
PRIORITY: Final = "Priority"
PRIORITY_HINT: Final = "Where order and weight are the same, the higher one is first."
TIME_ZONE: Final = "Time zone"
THE_HOUSE: Final = "The house itself"
THE_HOUSE_HINT: Final = "Empty: it is the house's own."
ACTIVE: Final = "On"
INACTIVE: Final = "Off"
ON_OR_OFF: Final = "On or off"
YES: Final = "Yes"
NO: Final = "No"
DELETED: Final = "Deleted"
SHOW_DELETED: Final = "Deleted"
WITH_DELETED: Final = "Show them too"
IS_DELETED: Final = "This {noun} is deleted"
IS_DELETED_NOTE: Final = "Nobody sees it, and it is out of the lists. It was deleted {ago}."
RESTORE: Final = "Restore"
RESTORED: Final = "«{name}» is back."
DELETE: Final = "Delete"
REMOVE: Final = "Remove"
WAS_DELETED: Final = "«{name}» is deleted."
UNDO: Final = "Undo"
SAVED: Final = "Saved."
NOTHING_CHANGED: Final = "Nothing was changed."
CREATE: Final = "Create"
STALE: Final = "Somebody else was faster"
RELOAD: Final = "Load it again"
KEEP: Final = "Stay here"
MORE: Final = "More"
LESS_OFTEN: Final = "Less often needed"
NO_LIMIT: Final = "no limit"
TABS: Final = "Parts of this page"
TAB_OVERVIEW: Final = "Overview"
TAB_SETTINGS: Final = "Settings"
TAB_HISTORY: Final = "History"
VIEW_ONLY: Final = "Your role may read this, but not change it."

MUST_BE_WEB: Final = "must be an address that begins with http:// or https:// and names a host"
MUST_BE_SLUG: Final = "must be small letters and digits, in words joined by single hyphens: home-hero"
MUST_BE_COLOUR: Final = "must be a colour like #ff8800"
MUST_BE_WHOLE: Final = "must be a whole number, 0 or more"
MUST_BE_POSITIVE: Final = "must be a whole number, 1 or more"
MUST_BE_PRICE: Final = "must be a number, 0 or more, with at most 4 decimal places"
MUST_BE_MONEY: Final = "must be 0 or more"
MUST_BE_MOMENT: Final = "must be a day and a time"
MUST_BE_TIME: Final = "must be a time of day like 09:30"
MUST_BE_DOMAIN: Final = "must be a domain like example.com, without https://, port or path"
MUST_NOT_BE_BLANK: Final = "must not be blank"
TOO_LONG: Final = "must have at most {length} characters"

HISTORY: Final = "Who changed what"
HISTORY_NOTE: Final = "Newest first"
NO_HISTORY: Final = "No changes yet"
NO_HISTORY_NOTE: Final = "Every change will be here: who made it, when, and from what to what."
ACTIONS: Final = {
    "create": "added {it}",
    "update": "changed {it}",
    "delete": "deleted {it}",
    "restore": "brought {it} back",
    "activate": "switched {it} on",
    "deactivate": "switched {it} off",
    "schedule": "scheduled {it}",
    "unschedule": "took {it} off the schedule",
    "pause": "paused {it}",
    "end": "ended {it}",
    "cancel": "cancelled {it}",
    "reset": "began the budget of {it} anew",
}
IT: Final = "it"
PARTS: Final = {
    "link": "the use of a placement",
    "assignment": "the place of a banner",
    "targeting_rule": "a condition",
}
EMPTY_VALUE: Final = "nothing"
OLDER: Final = "Older changes"
THE_SYSTEM: Final = "The system"
