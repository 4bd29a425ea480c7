"""SQL of what advertisers have paid, from the money ledger's hours."""

from datetime import datetime, timedelta
from typing import Final

from adloom.core.money import Micros
from adloom.runtime.postgres import Connection

# Campaigns of the house itself bring no income.
REVENUE: Final = """
    SELECT hour, sum(spent_micros)::bigint AS micros
      FROM spend_hours AS spent JOIN campaigns AS campaign ON campaign.id = spent.campaign_id
     WHERE hour >= $1 AND campaign.advertiser_id IS NOT NULL
     GROUP BY hour
"""


async def revenue(connection: Connection, *, since: datetime, step: timedelta) -> dict[datetime, Micros]:
    """Sum charges to advertisers by hour or day."""
    seconds = int(step.total_seconds())
    sums: dict[datetime, Micros] = {}
    for hour, micros in await connection.fetch(REVENUE, since):
        begin = datetime.fromtimestamp(int(hour.timestamp()) // seconds * seconds, since.tzinfo)
        sums[begin] = Micros(sums.get(begin, 0) + micros)
    return sums
