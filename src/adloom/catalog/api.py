"""The routes of the nouns that need none of their own."""

from adloom.catalog.document import CATALOG
from adloom.catalog.publisher.resource import publishers
from adloom.catalog.site.resource import sites
from adloom.catalog.targeting_rule.resource import targeting_rules
from adloom.resource.api import build_router
from adloom.resource.transfer.api import build_transfer_router

publishers_router = build_router(publishers)
sites_router = build_router(sites)
targeting_rules_router = build_router(targeting_rules)
transfer_router = build_transfer_router(CATALOG)
