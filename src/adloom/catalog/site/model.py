"""A site, and what can be wrong with one."""

from collections.abc import Collection
from datetime import datetime

import msgspec

from adloom.core.errors import ConflictError, NotFoundError
from adloom.core.ids import PublisherId, SiteId
from adloom.resource.shapes import Domain, TimeZone
from adloom.runtime.http.api.shapes import Name


class SiteNotFoundError(NotFoundError):
    """No such site, or it belongs to another publisher."""

    code = "SITE_NOT_FOUND"


class SiteDomainTakenError(ConflictError):
    """Another site has this domain."""

    code = "SITE_DOMAIN_EXISTS"


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A domain with pages."""

    id: SiteId
    publisher_id: PublisherId | None
    domain: Domain
    name: Name
    timezone: TimeZone = "UTC"
    created_at: datetime
    updated_at: datetime


def name_site(site: Site, _given: Collection[str], _now: datetime) -> Site:
    """Call a site that was given no name by its domain."""
    return site if site.name else msgspec.structs.replace(site, name=site.domain)
