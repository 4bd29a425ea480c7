"""Words of the first page."""

from typing import Final

TITLE: Final = "Overview"
LIVE: Final = "live"
SPANS: Final = {"today": "Today", "24h": "24 hours", "7d": "7 days"}
SPAN_LABEL: Final = "How far back"

REQUESTS: Final = "Requests"
REQUESTS_NOTE: Final = "a second, now"
REQUESTS_HINT: Final = (
    "Requests for ads a second, of all delivery processes; the line is the last hour by minute."
)
FILL: Final = "Fill"
FILL_NOTE: Final = "of the last hour"
FILL_HINT: Final = "The share of requests that got an ad."
IMPRESSIONS: Final = "Impressions"
CLICKS: Final = "Clicks"
CTR: Final = "CTR"
CTR_NOTE: Final = "{clicks} clicks"
SPEND: Final = "Spend"
SPEND_HINT: Final = "All charges, by the moment of each."
REVENUE: Final = "Revenue"
REVENUE_HINT: Final = "Charges to advertisers; the house's own campaigns are not among them."
LATENCY: Final = "Serve latency"
LATENCY_NOTE: Final = "99 % under {p99}"
LATENCY_HINT: Final = "From a whole request to its answer: the median of the slowest delivery process."
LAG: Final = "Ledger lag"
LAG_NONE: Final = "none"
LAG_NOTE: Final = "{entries} events to count"
LAG_HINT: Final = "How old the oldest event is that is not counted yet."

CHART_TRAFFIC: Final = "Requests and impressions"
CHART_MONEY: Final = "Money"
CHART_RATES: Final = "Rates"
CHART_COUNTS: Final = "Impressions and clicks"
BY_HOUR: Final = "by hour, UTC"
BY_DAY: Final = "by day, UTC"

ATTENTION: Final = "What needs attention"
ATTENTION_NONE: Final = "Nothing needs your attention."
ATTENTION_MORE: Final = "and {count} more of this kind"
LOOK_AT: Final = {"ledger": "System", "processes": "System", "jobs": "Jobs"}
ENDS: Final = "ends"

FIRST_TITLE: Final = "Nothing is shown yet"
FIRST_NOTE: Final = (
    "A placement, a banner and a campaign make an ad. The guided path makes all three with you."
)
FIRST_ACTION: Final = "Make my first campaign"
