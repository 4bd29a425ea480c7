"""Counts of events out of the database."""

from typing import Final

from adloom.reporting.model import Counts, Grouping, StatsQuestion, StatsRow
from adloom.runtime.listing import Filters
from adloom.runtime.postgres import Pool

KEYS: Final = {
    Grouping.DAY: "it.day",
    Grouping.BANNER: "banners.public_id",
    Grouping.PLACEMENT: "placements.public_id",
    Grouping.CAMPAIGN: "campaigns.public_id",
}

# An advertiser's are the counts of its campaigns. Where an event named no campaign, they are its banner's.
STATISTICS: Final = """
    SELECT {key} AS key, sum(it.impressions)::bigint AS impressions, sum(it.clicks)::bigint AS clicks
      FROM event_counts AS it
      JOIN banners ON banners.id = it.banner_id
      JOIN placements ON placements.id = it.placement_id
      LEFT JOIN campaigns ON campaigns.id = it.campaign_id
      LEFT JOIN advertisers ON advertisers.id =
          CASE WHEN it.campaign_id IS NULL THEN banners.advertiser_id ELSE campaigns.advertiser_id END
      LEFT JOIN publishers ON publishers.id = placements.publisher_id
     WHERE {filters}
     GROUP BY {key}
     ORDER BY {key}
"""


async def statistics(pool: Pool, question: StatsQuestion) -> list[StatsRow]:
    """Read one row for each key of the grouping that has counts."""
    filters = Filters()
    filters.add("it.day BETWEEN {} AND {}", question.first, question.last)
    filters.add_given("banners.public_id = {}", question.banner_id)
    filters.add_given("placements.public_id = {}", question.placement_id)
    filters.add_given("campaigns.public_id = {}", question.campaign_id)
    filters.add_given("advertisers.public_id = {}", question.advertiser_id)
    filters.add_given("publishers.public_id = {}", question.publisher_id)
    statement = STATISTICS.format(key=KEYS[question.grouping], filters=filters.sql)
    return [
        StatsRow(key=row["key"], counts=Counts(row["impressions"], row["clicks"]))
        for row in await pool.fetch(statement, *filters.values)
    ]
