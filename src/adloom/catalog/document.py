"""What an export has and an import takes: the nouns of the catalog, those first that others name."""

from typing import Final

from adloom.catalog.advertiser import advertisers
from adloom.catalog.assignment.resource import assignments, links
from adloom.catalog.banner import banners
from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.creative.resource import creatives
from adloom.catalog.frequency_cap import frequency_caps
from adloom.catalog.placement import placements
from adloom.catalog.publisher import publishers
from adloom.catalog.reference.resource import RECORDS
from adloom.catalog.site.resource import sites
from adloom.catalog.targeting_rule import targeting_rules
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
        creatives,
        targeting_rules,
        frequency_caps,
    )
)
