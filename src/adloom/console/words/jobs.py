"""Words of the jobs page."""

from typing import Final

TITLE: Final = "Jobs"
NOTE: Final = "Work that is done in the background: schedules, daily rollups, statistics of ad accounts."
QUEUES: Final = {"banners": "Schedules and rollups", "stats-sync": "Stats sync"}
QUEUE_NOTE: Final = "{waiting} waiting, {active} running, {delayed} for another attempt"
FAILED: Final = "{count} failed"
NOTHING_FAILED: Final = "nothing has failed"
STATES: Final = {"failed": "Failed", "waiting": "Waiting", "active": "Running", "completed": "Done"}
STATE: Final = "State"
QUEUES_LABEL: Final = "Queues"
JOB: Final = "Job"
NAMES: Final = {
    "banner.sync_schedule_status": "Move what is due",
    "banner.rollup_stats": "Roll up a day",
    "stats.schedule": "Plan the stats sync",
    "stats.sync": "Sync statistics",
}
PROGRESS: Final = "Progress"
ATTEMPTS: Final = "Attempts"
ERROR: Final = "What it said"
CREATED: Final = "Put"
ENDED: Final = "Ended"
RETRY: Final = "Try again"
RETRY_ALL: Final = "Try all again"
RETRY_ALL_TITLE: Final = "Try all failed jobs again?"
RETRY_ALL_NOTE: Final = (
    "Each gets all its attempts again. What has caused them to fail should be mended first."
)
RETRIED: Final = "It is tried again."
RETRIED_ALL: Final = "{count} jobs are tried again."
EMPTY: Final = "No jobs in this state"
EMPTY_FAILED: Final = "Nothing has failed"
EMPTY_NOTE: Final = "Jobs that fail five times stay here until somebody tries them again."
SELLER: Final = "Seller"
LEVELS: Final = {"CAMPAIGN": "Campaigns", "ADSET": "Ad sets", "AD": "Ads"}
DAYS: Final = "{first} to {last}"
