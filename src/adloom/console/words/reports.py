"""Words of the reports: statistics by any dimension, and those of ad accounts elsewhere."""

from typing import Final

TITLE: Final = "Reports"
NOTE: Final = "Impressions, clicks and spend, by whatever you want to know. Days and hours are those of UTC."
CSV: Final = "Download CSV"
PERIOD: Final = "Period"
PERIODS: Final = {
    "1": "Today",
    "2": "Since yesterday",
    "7": "Last 7 days",
    "30": "Last 30 days",
    "90": "Last 90 days",
}
FROM: Final = "From"
TO: Final = "To"
BY: Final = "By"
DIMENSIONS: Final = {
    "day": "Day",
    "hour": "Hour",
    "campaign": "Campaign",
    "banner": "Banner",
    "placement": "Placement",
    "country": "Country",
    "device": "Device",
}
METRIC: Final = "Chart of"
METRICS: Final = {"impressions": "Impressions", "clicks": "Clicks", "ctr": "CTR", "spendPaisa": "Spend"}
CAMPAIGN: Final = "Only the campaign"
PLACEMENT: Final = "Only the placement"
COUNTRY: Final = "Only the country"
DEVICE: Final = "Only the device"
UNKNOWN: Final = "unknown"
NO_CAMPAIGN: Final = "no campaign"
INVALID: Final = "Invalid"
INVALID_NOTE: Final = "{count} are not valid, and not billed"
SPEND_UNKNOWN: Final = "Charges tell nothing of readers"
OTHERS: Final = "Others"
CHART: Final = "{metric} by {dimension}"
EMPTY: Final = "Nothing was counted here"
EMPTY_NOTE: Final = "Choose other days or fewer filters. Impressions are there seconds after they were seen."
ROWS: Final = "{count} rows"
DOWNLOADED: Final = "The sheet is downloaded."

ADS_TITLE: Final = "Stats sync"
ADS_NOTE: Final = "What ad accounts elsewhere have cost and brought, day by day."
SELLER: Final = "Seller"
CHOOSE_SELLER: Final = "Whose ad accounts?"
CHOOSE_SELLER_NOTE: Final = "Each seller has ad accounts of its own. Choose one above."
NO_SELLERS: Final = "There are no advertisers yet"
NO_SELLERS_NOTE: Final = "A seller is an advertiser with ad accounts elsewhere. Make an advertiser first."
TO_ADVERTISERS: Final = "To the advertisers"
LEVELS: Final = {"campaigns": "Campaigns", "adsets": "Ad sets", "ads": "Ads", "sellpages": "Sell pages"}
LEVELS_LABEL: Final = "Levels"
STATUS: Final = "Status"
STATUSES: Final = {"ACTIVE": "Active", "PAUSED": "Paused", "ARCHIVED": "Archived"}
SEARCH: Final = "Search names"
NAME: Final = "Name"
SPEND: Final = "Spend"
IMPRESSIONS: Final = "Impressions"
LINK_CLICKS: Final = "Link clicks"
CTR: Final = "CTR"
CPC: Final = "CPC"
CPM: Final = "CPM"
PURCHASES: Final = "Purchases"
PURCHASE_VALUE: Final = "Purchase value"
COST_PER_PURCHASE: Final = "Per purchase"
ROAS: Final = "ROAS"
ORDERS: Final = "Orders"
REVENUE: Final = "Revenue"
SOURCE: Final = "Source"
CR2: Final = "Bought of clicks"
SEVERAL_CURRENCIES: Final = "several currencies"
SPEND_AND_ROAS: Final = "Spend, and what came back of it"
ADS_EMPTY: Final = "No statistics of these days"
ADS_EMPTY_NOTE: Final = "Sync them now, or add an ad account with campaigns for this seller."
SYNC: Final = "Sync now"
SYNC_TITLE: Final = "Sync these days"
SYNC_NOTE: Final = "The days {first} to {last} are fetched anew, one job a level."
SYNC_STARTED: Final = "{count} jobs are started."
SYNC_RUNNING: Final = "They run already."
SYNC_DONE: Final = "Synced. The figures are new."
SYNC_FAILED: Final = "A job has failed: {error}"
TO_JOBS: Final = "To the jobs"
