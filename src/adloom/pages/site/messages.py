"""Messages that a site actor receives and sends."""

# pure

from datetime import datetime
from typing import TypeAlias

import msgspec

from adloom.core.ids import SiteId
from adloom.pages.follow.page_table import PageEntry, PageTable
from adloom.runtime.actors.actor import Address

SITE = "site"


def make_site_address(site_id: SiteId) -> Address:
    return Address(SITE, str(site_id))


class SlotConfig(msgspec.Struct, frozen=True):
    """A contextual placement of the site: its slug and its size, if it has one."""

    slug: str
    width: int | None = None
    height: int | None = None


class SiteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the catalog says about a site."""

    domain: str
    is_verified: bool = False
    is_suspended: bool = False
    slots: tuple[SlotConfig, ...] = ()


class ConfigureSite(msgspec.Struct, frozen=True, tag=True):
    """The site as of a version of the catalog; None where it is gone."""

    version: int
    config: SiteConfig | None


class ReadPages(msgspec.Struct, frozen=True, tag=True):
    """All pages of the site, as read at one version."""

    table: PageTable


class ChangePages(msgspec.Struct, frozen=True, tag=True):
    """Pages that changed."""

    pages: tuple[PageEntry, ...]


class CheckSite(msgspec.Struct, frozen=True, tag=True):
    """Nothing but a reason to be in memory."""


SiteMessage: TypeAlias = ConfigureSite | ReadPages | ChangePages | CheckSite


class SiteConfigured(msgspec.Struct, frozen=True, tag=True):
    """To sellers: the site has changed, or its slots; None where it is gone."""

    site_id: SiteId
    version: int
    config: SiteConfig | None


class PageCategoriesClassified(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """To sellers: what a page is about. One with an older version than the last of its URL is to be dropped."""

    site_id: SiteId
    url: str
    version: int
    categories: dict[str, float]
    slots: tuple[str, ...]
    classified_at: datetime


class PagesWithdrawn(msgspec.Struct, frozen=True, tag=True):
    """To sellers: pages that are gone, as of a version."""

    site_id: SiteId
    version: int
    urls: tuple[str, ...]


class PagesListed(msgspec.Struct, frozen=True, tag=True):
    """To sellers: all pages that there are as of a version; what they know of others up to it is to be dropped."""

    site_id: SiteId
    version: int
    urls: tuple[str, ...]


class ToldUpTo(msgspec.Struct, frozen=True):
    """The answer of a site: the version up to which its pages were told, which is durable."""

    version: int
