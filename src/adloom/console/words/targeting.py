"""Words of targeting: the sentence that says what rules mean, and the dialog that makes them."""

from typing import Final

SHOWN: Final = "Shown {parts}."
TO_EVERYBODY: Final = "Shown to everybody, everywhere, at any time."
OFF_ONE: Final = "One condition is switched off."
OFF_MANY: Final = "{count} conditions are switched off."
OR: Final = "{before} or {last}"
AND: Final = "{before} and {last}"

IN_COUNTRIES: Final = "in {names}"
OUTSIDE_COUNTRIES: Final = "outside {names}"
ON_DEVICES: Final = "on {names}"
NOT_ON_DEVICES: Final = "not on {names}"
IN_LANGUAGES: Final = "to readers of {names}"
NOT_IN_LANGUAGES: Final = "not to readers of {names}"
TO_SEGMENTS: Final = "to the segment {names}"
NOT_TO_SEGMENTS: Final = "not to the segment {names}"
FROM_DOMAINS: Final = "to those who come from {names}"
NOT_FROM_DOMAINS: Final = "not to those who come from {names}"
LOGGED_IN: Final = "to logged-in readers"
NOT_LOGGED_IN: Final = "not to logged-in readers"
NEW_VISITORS: Final = "to new visitors"
RETURNING_VISITORS: Final = "to returning visitors"
BETWEEN_HOURS: Final = "from {first}:00 to {last}:59"
IN_HOURS: Final = "in the hours {names}"
NOT_IN_HOURS: Final = "not in the hours {names}"
ON_DAYS: Final = "on {names}"
FROM_DAY_TO_DAY: Final = "from {first} to {last}"
NOT_ON_DAYS: Final = "not on {names}"

DEVICES: Final = {"mobile": "phones", "tablet": "tablets", "desktop": "computers"}
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
HOUR: Final = "{hour:02}:00"

TARGETING: Final = "Targeting"
NOTE: Final = "A reader has to meet every condition. Hours and days are those of the placement's time zone."
CONDITIONS: Final = "Conditions"
ADD: Final = "Add a condition"
CHANGE: Final = "Change the condition"
NO_CONDITIONS: Final = "No conditions yet"
NO_CONDITIONS_NOTE: Final = "Everybody may see this campaign. Add a condition to narrow that."
ABOUT: Final = "What is it about?"
OPERATOR: Final = "Comparison"
RULE_TYPES: Final = {
    "country": "Country",
    "device": "Device",
    "language": "Language",
    "login_state": "Logged in or not",
    "new_visitor": "New or returning",
    "user_segment": "Segment",
    "referrer_domain": "Where readers come from",
    "hour_of_day": "Hour of the day",
    "day_of_week": "Day of the week",
}
RULE_ICONS: Final = {
    "country": "public",
    "device": "devices",
    "language": "translate",
    "login_state": "how_to_reg",
    "new_visitor": "waving_hand",
    "user_segment": "group_work",
    "referrer_domain": "link",
    "hour_of_day": "schedule",
    "day_of_week": "calendar_today",
}
OPERATORS: Final = {"in": "is one of", "not_in": "is none of", "is": "is", "between": "is between"}
VALUES: Final = {
    "country": "Countries",
    "device": "Devices",
    "language": "Languages",
    "user_segment": "Names of segments; press Enter after each",
    "referrer_domain": "Domains such as example.com; press Enter after each",
    "hour_of_day": "Hours",
    "day_of_week": "Days",
}
FIRST_HOUR: Final = "From the hour"
LAST_HOUR: Final = "To the hour (it is included)"
TRUE_LABELS: Final = {"login_state": "Logged in", "new_visitor": "New"}
FALSE_LABELS: Final = {"login_state": "Not logged in", "new_visitor": "Returning"}
UNKNOWN_FAILS: Final = "A reader of whom this is not known does not see the campaign."
UNKNOWN_PASSES: Final = "A reader of whom this is not known sees the campaign."
ADDED: Final = "The condition is added."
CHANGED: Final = "The condition is changed."
REMOVED: Final = "The condition is removed."
REMOVE: Final = "Remove"
EDIT: Final = "Change"
SWITCH: Final = "This condition counts"
