"""Words of schedules and of their calendar."""

from typing import Final

SCHEDULE: Final = "Schedule"
NEXT_WEEKS: Final = "The next four weeks"
IN_ZONE: Final = "Hours of {zone}"
ALL_DAY: Final = "all day"
OFF: Final = "off"
TODAY: Final = "today"
WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SPAN: Final = "{first}–{last}"
MORE_SPANS: Final = "{spans} …"
DAY_LABEL: Final = "{day}: {hours}"
CALENDAR: Final = "Calendar of the next four weeks"
HOURS_ON: Final = "On for {share} of the time in the next four weeks."
NEVER_ON: Final = "Never on in the next four weeks."
ALWAYS_ON: Final = "On all the time."

PUBLISH_AT: Final = "From"
EXPIRES_AT: Final = "Until"
ZONE: Final = "Time zone"
NO_DATES: Final = "Without dates it may be shown at any time."
WINDOW_START: Final = "Every day from"
WINDOW_END: Final = "Every day until"
WINDOW_HINT: Final = "A window may go over midnight: 22:00 until 02:00."
REPEATS: Final = "Repeats"
RULE: Final = "Recurrence rule (RFC 5545)"
RULE_HINT: Final = "Such as FREQ=WEEKLY;BYDAY=MO,FR. Empty is every day."
PRESETS: Final = {
    "": "Every day",
    "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR": "On working days",
    "FREQ=WEEKLY;BYDAY=SA,SU": "On weekends",
    "own": "As a rule says",
}
