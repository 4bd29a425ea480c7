"""The routes of the nouns that need none of their own."""

from adloom.catalog.site.resource import sites
from adloom.resource.api import build_router

sites_router = build_router(sites)
