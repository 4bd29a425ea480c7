"""What advertisers have paid, out of the money ledger's hours."""

from datetime import datetime, timedelta
from typing import Final

from adloom.core.money import Micros
from adloom.runtime.postgres import Connection

# What the house pays itself for its own campaigns is no income.
REVENUE: Final = """
    SELECT hour, sum(spent_micros)::bigint AS micros
      FROM spend_hours AS spent JOIN campaigns AS campaign ON campaign.id = spent.campaign_id
     WHERE hour >= $1 AND campaign.advertiser_id IS NOT NULL
     GROUP BY hour
"""


async def revenue(connection: Connection, *, since: datetime, step: timedelta) -> dict[datetime, Micros]:
    """Sum up what was charged to advertisers, by the hour or day in which it was."""
    seconds = int(step.total_seconds())
    sums: dict[datetime, Micros] = {}
    for hour, micros in await connection.fetch(REVENUE, since):
        begin = datetime.fromtimestamp(int(hour.timestamp()) // seconds * seconds, since.tzinfo)
        sums[begin] = Micros(sums.get(begin, 0) + micros)
    return sums
