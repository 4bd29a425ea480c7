"""A site: a domain with pages, how it is crawled, how its pages are sold, and what else a change of one touches."""

from datetime import datetime
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec
from pydantic import AfterValidator, Field

from adloom.auction.site_modes import ApprovalMode, AuctionMode, FloorMode
from adloom.catalog.publisher import publishers
from adloom.catalog.taxonomy.fields import ProductCategory
from adloom.core.errors import ConflictError, make_field_error, make_taken_error
from adloom.core.ids import PublisherId, SiteId
from adloom.core.money import Micros
from adloom.resource.access import PUBLISHER, Scope
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.forget import ReferenceField, clear_references
from adloom.resource.resource import Resource
from adloom.resource.shapes import Domain, Price, TimeZone
from adloom.runtime.http.api.shapes import TAKES_WHOLE_FLOATS, Flag, Name, Text, WebAddress
from adloom.runtime.jobs.cron import Cron, CronError
from adloom.targeting.site_hosts import (
    PATTERN_LENGTH_MAX,
    HostPatternError,
    SiteHosts,
    check_host_pattern,
)
from adloom.targeting.values import normalize_domain

HOURS: Final = 24
DAY_SECONDS: Final = 86_400
CRON_LENGTH_MAX: Final = 100
CRON_DEFAULT: Final = "0 2 * * *"
BLOCKED_PRODUCTS_MAX: Final = 1_000
BLOCKED_DOMAINS_MAX: Final = 1_000
WEB_PORTS: Final = frozenset({None, 80, 443})
PLACEMENTS = ReferenceField(
    noun=IndexedNoun.PLACEMENT,
    table="placements",
    owner_field="publisher_id",
    owners="publishers",
    field="site_id",
    key="(SELECT id FROM sites WHERE public_id = $1)",
)
HAS_SLOTS: Final = """
    SELECT EXISTS (
        SELECT FROM placements AS it JOIN sites AS site ON site.id = it.site_id
         WHERE site.public_id = $1 AND it.delivery = 'contextual'
    )
"""
PLACEMENT_KEYS = """
    SELECT it.id FROM placements AS it JOIN sites AS site ON site.id = it.site_id WHERE site.public_id = $1
"""
IS_VERIFIED_ELSEWHERE: Final = """
    SELECT EXISTS (SELECT FROM sites WHERE domain = $1 AND public_id <> $2 AND verified_at IS NOT NULL)
"""


def _check_cron(text: str) -> str:
    schedule = " ".join(text.split())
    try:
        Cron(schedule)
    except CronError as error:
        raise ValueError(f"must be a cron expression like {CRON_DEFAULT}: {error}") from None
    return schedule


def _check_pattern(text: str) -> str:
    try:
        return check_host_pattern(text)
    except HostPatternError as error:
        raise ValueError(f"must be a regular expression in RE2's syntax: {error}") from None


# Only proportions matter. Of far smaller numbers, which floats can be, the average would be 0.
SHAPE_LEAST: Final = 0.000001


def _check_shape(shape: tuple[float, ...]) -> tuple[float, ...]:
    if max(shape) < SHAPE_LEAST:
        raise ValueError(f"must have an hour that is {SHAPE_LEAST:f} or more")
    return shape


CronSchedule = Annotated[Text, Field(max_length=CRON_LENGTH_MAX), AfterValidator(_check_cron)]
HostPattern = Annotated[
    Text, Field(min_length=1, max_length=PATTERN_LENGTH_MAX), AfterValidator(_check_pattern)
]
DayShape = Annotated[
    tuple[Annotated[float, Field(strict=True, ge=0, le=1_000_000, allow_inf_nan=False)], ...],
    Field(min_length=HOURS, max_length=HOURS),
    AfterValidator(_check_shape),
]


class SitePacing(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How budgets are spread over the site's day."""

    day_duration_seconds: Annotated[int, Field(strict=True, ge=60, le=DAY_SECONDS), TAKES_WHOLE_FLOATS] = (
        DAY_SECONDS
    )
    weekday_shape: Annotated[
        DayShape | None, Field(description="How much traffic each hour has, in any unit.")
    ] = None
    weekend_shape: DayShape | None = None
    warmup: Annotated[Flag, Field(description="Learn the traffic first, and show nothing.")] = False


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A domain with pages."""

    id: SiteId
    publisher_id: PublisherId | None
    domain: Domain
    name: Name
    timezone: TimeZone = "UTC"
    seed_url: Annotated[
        WebAddress | None, Field(description="Where a crawl begins; without it, at the domain's front page.")
    ] = None
    cron_schedule: Annotated[
        CronSchedule | None,
        Field(description="When it is crawled: five fields, in its zone; null for never."),
    ] = CRON_DEFAULT
    max_depth: Annotated[int, Field(strict=True, ge=0, le=5), TAKES_WHOLE_FLOATS] = 2
    max_pages: Annotated[int, Field(strict=True, ge=1, le=10_000), TAKES_WHOLE_FLOATS] = 1_000
    crawl_concurrency: Annotated[int, Field(strict=True, ge=1, le=8), TAKES_WHOLE_FLOATS] = 5
    host_pattern: Annotated[
        HostPattern | None,
        Field(
            description="A regular expression over whole host names: which of the domain's hosts are meant."
        ),
    ] = None
    ad_product_blocklist: Annotated[tuple[ProductCategory, ...], Field(max_length=BLOCKED_PRODUCTS_MAX)] = ()
    blocked_domains: Annotated[
        tuple[Domain, ...],
        Field(max_length=BLOCKED_DOMAINS_MAX, description="Domains to which no ad may lead."),
    ] = ()
    approval_mode: ApprovalMode = ApprovalMode.MANUAL
    floor_cpm_micros: Annotated[
        Price, Field(alias="floorCpm", description="The least that a thousand impressions must be worth.")
    ] = Micros(500_000)
    min_floor_cpm_micros: Annotated[
        Price, Field(alias="minFloorCpm", description="How low the floor may be moved.")
    ] = Micros(100_000)
    floor_mode: FloorMode = FloorMode.FIXED
    auction_mode: AuctionMode = AuctionMode.SECOND_PRICE
    bid_weight: Annotated[
        float,
        Field(
            strict=True, ge=0.1, le=1, allow_inf_nan=False, description="How much a bid counts beside its ad."
        ),
    ] = 0.5
    accepts_filler: Annotated[Flag, Field(description="Whether pages without a category get ads.")] = True
    is_suspended: Flag = False
    pacing: SitePacing = msgspec.field(default_factory=SitePacing)
    verified_at: datetime | None = None
    verified_host: str | None = None
    created_at: datetime
    updated_at: datetime

    @property
    def hosts(self) -> SiteHosts:
        return SiteHosts(self.domain, self.host_pattern)

    def normalize(self) -> "Site":
        """Return the site in its normal form; raises where its fields contradict each other.

        One without a name is called by its domain. Another domain than the verified one is not verified.
        """
        if self.min_floor_cpm_micros > self.floor_cpm_micros:
            raise make_field_error("minFloorCpm", "must be at most floorCpm")
        self._check_seed()
        is_verified = self.verified_host == self.domain
        return msgspec.structs.replace(
            self,
            name=self.name or self.domain,
            ad_product_blocklist=tuple(dict.fromkeys(self.ad_product_blocklist)),
            blocked_domains=tuple(dict.fromkeys(self.blocked_domains)),
            verified_at=self.verified_at if is_verified else None,
            verified_host=self.verified_host if is_verified else None,
        )

    def _check_seed(self) -> None:
        if self.seed_url is None:
            return
        try:
            parts = urlsplit(self.seed_url)
            is_plain = parts.port in WEB_PORTS and parts.username is None
        except ValueError:
            is_plain = False
        else:
            if not self.hosts.has(parts.hostname or ""):
                also = " and match hostPattern" if self.host_pattern else ""
                raise make_field_error("seedUrl", f"must be on {self.domain} or below it{also}")
        if not is_plain:
            raise make_field_error("seedUrl", "must have no user name, and no port but 80 and 443")


def make_domain_taken_error(site: Site) -> ConflictError:
    detail = f"There is a site with the domain {site.domain} already."
    return make_taken_error("domain", detail, code="SITE_DOMAIN_EXISTS")


async def _check_domain(write: CatalogWrite, _scope: Scope, before: Site | None, after: Site) -> None:
    """Refuse the domain of a verified site. One that is not verified reserves nothing: the first to prove the domain gets it."""
    is_new = before is None or before.domain != after.domain
    if is_new and await write.connection.fetchval(IS_VERIFIED_ELSEWHERE, after.domain, after.id):
        raise make_domain_taken_error(after)


async def _touch_placements(write: CatalogWrite, before: Site, after: Site) -> None:
    # Advertisers block sites by their domains, and nothing is shown on one that warms up.
    if (before.domain, before.pacing.warmup) != (after.domain, after.pacing.warmup):
        await write.touch_all(IndexedNoun.PLACEMENT, PLACEMENT_KEYS, after.id)


async def _let_go_of_placements(write: CatalogWrite, site: Site, now: datetime) -> None:
    if await write.connection.fetchval(HAS_SLOTS, site.id):
        raise ConflictError(
            "Contextual placements are on this site. Remove them, or move them to another site, first.",
            code="SITE_HAS_SLOTS",
        )
    await clear_references(write, PLACEMENTS, site.id, now=now)


sites = Resource(
    struct=Site,
    name="site",
    path="/admin/sites",
    tag="sites",
    table_name="sites",
    title="name",
    owner=PUBLISHER,
    references={"publisher_id": publishers},
    docs={
        "body": "A new site. Without a publisher it belongs to the house; without a name it is called by its domain.",
        "change": "Change a site, field by field; `pacing` as a whole. Another domain is not verified.",
        "delete": "Remove a site without contextual placements; its other placements stay, without a site.",
    },
    create_form={"name": (Name | None, None)},
    filters=("publisher_id",),
    search=("domain", "name"),
    sort=("domain", "name"),
    touches=(IndexedNoun.SITE, "id"),
    set_by_server=frozenset({"verified_at", "verified_host"}),
    finish=lambda site, _given, _now: site.normalize(),
    after_update=_touch_placements,
    before_delete=_let_go_of_placements,
    check=_check_domain,
    taken=make_domain_taken_error,
    list_name="sites",
    natural_key="domain",
    is_in_the_way=lambda other, site: (
        other.publisher_id == site.publisher_id or other.verified_at is not None
    ),
    normalize=lambda text: normalize_domain(text) or text,
)
