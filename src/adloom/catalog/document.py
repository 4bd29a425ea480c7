"""What an export has and an import takes: the nouns of the catalog, those first that others name."""

from typing import Final

from adloom.catalog.advertiser.resource import advertisers
from adloom.catalog.assignment.resource import assignments, links
from adloom.catalog.banner.resource import banners
from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.frequency.resource import frequency_caps
from adloom.catalog.placement.resource import placements
from adloom.catalog.publisher.resource import publishers
from adloom.catalog.reference.resource import RECORDS
from adloom.catalog.site.resource import sites
from adloom.catalog.targeting_rule.resource import targeting_rules
from adloom.resource.transfer.exchange import Exchange

CATALOG: Final = Exchange(
    (
        advertisers,
        publishers,
        sites,
        *RECORDS.values(),
        placements,
        banners,
        campaigns,
        links,
        assignments,
        targeting_rules,
        frequency_caps,
    )
)
