"""Sites in the index: to which the page that asks belongs, and whether its publisher has proved to own it."""

# pure

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from adloom.auction.site_modes import ApprovalMode, AuctionMode, FloorMode
from adloom.core.ids import SiteId
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules
from adloom.targeting.site_hosts import HostPatternError, SiteHosts, drop_www
from adloom.taxonomy.iab import load_products

LABELS_MAX: Final = 10  # Of a host; sites are not looked for below that.


class SiteRow(msgspec.Struct, frozen=True, kw_only=True):
    """A site as the catalog has it."""

    key: int
    id: SiteId
    domain: str
    host_pattern: str | None = None
    verified_host: str | None = None
    is_suspended: bool = False
    floor: Micros = Micros(0)
    floor_min: Micros = Micros(0)
    floor_mode: FloorMode = FloorMode.FIXED
    bid_weight: float = 0.5
    auction_mode: AuctionMode = AuctionMode.SECOND_PRICE
    accepts_filler: bool = True
    approval_mode: ApprovalMode = ApprovalMode.MANUAL
    blocked_products: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    is_warming_up: bool = False
    timezone: str = "UTC"
    day_seconds: int = 86_400


class IndexedSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site with its hosts; None where their pattern cannot be read, and then no page is of the site."""

    key: int
    id: SiteId
    domain: str  # Without `www.`, as hosts of normalised URLs are.
    hosts: SiteHosts | None
    is_verified: bool
    is_suspended: bool
    floor: Micros = Micros(0)
    floor_min: Micros = Micros(0)
    is_sweeping: bool = False  # Whether floors move by category.
    bid_weight: float = 0.5
    is_first_price: bool = False
    accepts_filler: bool = True
    is_warming_up: bool = False
    blocked_products: frozenset[str] = frozenset()  # With all that is below them.
    blocked_domains: frozenset[str] = frozenset()
    approvals: ApprovalRules = ApprovalRules()
    timezone: str = "UTC"
    day_seconds: int = 86_400  # Fewer where days are simulated.

    def has_host(self, host: str) -> bool:
        return self.hosts is not None and self.hosts.has(host)


class SiteIndex(msgspec.Struct, frozen=True):
    """All sites, by key and by domain."""

    by_key: Mapping[int, IndexedSite] = {}
    by_domain: Mapping[str, IndexedSite] = {}

    def replaced(self, gone: Iterable[int], sites: Iterable[IndexedSite]) -> "SiteIndex":
        """Return the sites with some of them removed, and some added."""
        by_key = dict(self.by_key)
        for key in gone:
            by_key.pop(key, None)
        by_key |= {site.key: site for site in sites}
        # A verified site has the hosts. Of others, with one domain or with and without `www.`, the oldest has them.
        ordered = sorted(by_key.values(), key=lambda site: (site.is_verified, -site.key))
        by_domain = {site.domain: site for site in ordered}
        return SiteIndex(by_key, by_domain)

    def find_by_host(self, host: str) -> list[IndexedSite]:
        """Find the sites that a host is of, the nearest domain first."""
        found: list[IndexedSite] = []
        rest = host
        for _ in range(LABELS_MAX):
            site = self.by_domain.get(rest)
            if site is not None and site.has_host(host):
                found.append(site)
            _, dot, rest = rest.partition(".")
            if not dot:
                break
        return found


NO_SITES: Final = SiteIndex()


def compile_site(row: SiteRow, approvals: ApprovalRules) -> IndexedSite:
    hosts: SiteHosts | None = SiteHosts(row.domain, row.host_pattern)
    try:
        hosts.has(row.domain)  # Compiles the pattern now, and not at a request.
    except HostPatternError:
        hosts = None
    return IndexedSite(
        key=row.key,
        id=row.id,
        domain=drop_www(row.domain),
        hosts=hosts,
        is_verified=row.verified_host is not None,
        is_suspended=row.is_suspended,
        floor=row.floor,
        floor_min=row.floor_min,
        is_sweeping=row.floor_mode is FloorMode.SWEEP,
        bid_weight=row.bid_weight,
        is_first_price=row.auction_mode is AuctionMode.FIRST_PRICE,
        accepts_filler=row.accepts_filler,
        is_warming_up=row.is_warming_up,
        blocked_products=with_descendants(row.blocked_products),
        blocked_domains=frozenset(row.blocked_domains),
        approvals=approvals,
        timezone=row.timezone,
        day_seconds=row.day_seconds,
    )


def with_descendants(product_ids: Iterable[str]) -> frozenset[str]:
    """Return products and all that is below them."""
    found = set(product_ids)
    for product_id in product_ids:
        found |= load_products().list_descendants(product_id)
    return frozenset(found)
