"""A site, and what can be wrong with one."""

from datetime import datetime

import msgspec

from adloom.core.errors import ConflictError, NotFoundError
from adloom.core.ids import PublisherId, SiteId


class SiteNotFoundError(NotFoundError):
    """No such site, or it is somebody else's."""

    code = "SITE_NOT_FOUND"


class SiteDomainTakenError(ConflictError):
    """Another site has this domain."""

    code = "SITE_DOMAIN_EXISTS"


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A domain with pages."""

    id: SiteId
    publisher_id: PublisherId | None
    domain: str
    name: str
    timezone: str
    created_at: datetime
    updated_at: datetime
