"""Approvals in PostgreSQL: the banners that were candidates on a site, and what its publisher decided."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Final
from uuid import UUID

import msgspec

from adloom.catalog.banner_content import CONTENT, BannerContent, write_columns
from adloom.catalog.site import Site
from adloom.core.caller import Caller, Role
from adloom.core.errors import StaleWriteError
from adloom.core.ids import SiteId
from adloom.market.approval import ApprovalState
from adloom.pages.live.store import CAMPAIGN_OF_APPROVAL
from adloom.resource.audit.entry import OWNED_NOUNS, AuditSubject, NewAuditEntry
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.history.store import find_subject_id, read_people
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection
from adloom.targeting.values import find_landing_domain
from adloom.taxonomy.iab import load_products

NOUN: Final = "approval"
OWNED_NOUNS[Role.PUBLISHER].append(NOUN)


class ApprovalDecision(StrEnum):
    """What a publisher can do with a banner."""

    APPROVE = "approve"
    REJECT = "reject"
    REVOKE = "revoke"
    FLAG = "flag"
    UNFLAG = "unflag"


_PENDING, _APPROVED, _REJECTED, _FLAGGED = ApprovalState
# From which states each leads to which; elsewhere it changes nothing.
MOVES: Final[Mapping[ApprovalDecision, tuple[frozenset[ApprovalState], ApprovalState]]] = {
    ApprovalDecision.APPROVE: (frozenset({_PENDING, _REJECTED, _FLAGGED}), _APPROVED),
    ApprovalDecision.REJECT: (frozenset({_PENDING, _APPROVED, _FLAGGED}), _REJECTED),
    ApprovalDecision.REVOKE: (frozenset({_APPROVED}), _PENDING),
    ApprovalDecision.FLAG: (frozenset({_PENDING, _APPROVED, _REJECTED}), _FLAGGED),
    ApprovalDecision.UNFLAG: (frozenset({_FLAGGED}), _PENDING),
}

# No banner waits in vain: a campaign that runs must show the banner, and the site block neither its product nor where it
# leads. `{nodes}` are products, each beside itself or one above it in `{blocked}`.
WANTED: Final = """
    (it.state <> 'pending' OR (
        banner.is_active
        AND EXISTS (
            SELECT FROM creatives AS creative JOIN campaigns AS own ON own.id = creative.campaign_id
             WHERE creative.banner_id = it.banner_id AND own.deleted_at IS NULL
               AND own.status IN ('active', 'scheduled')
               AND (cardinality(site.ad_product_blocklist) = 0 OR own.ad_product_category IS NULL OR NOT EXISTS (
                    SELECT FROM unnest({nodes}::text[], {blocked}::text[]) AS below (node, blocked)
                     WHERE below.node = own.ad_product_category AND below.blocked = ANY (site.ad_product_blocklist))))
        AND NOT EXISTS (
            SELECT FROM unnest(site.blocked_domains) AS blocked (domain),
                   substring(lower(banner.cta_url) FROM '^[^:/?#]+://(?:[^/?#]*@)?(?:www\\.)?([^/?#:]+)') AS host
             WHERE right('.' || rtrim(host, '.'), length(domain) + 1) = '.' || domain)))
"""

SOURCE: Final = RowSource(
    columns=f"""
        banner.public_id AS banner_id, campaign.public_id AS campaign_id, campaign.name AS campaign_name,
        payer.public_id AS advertiser_id, payer.name AS advertiser_name, {write_columns(CONTENT)},
        banner.width, banner.height, banner.updated_at AS banner_updated_at,
        campaign.ad_product_category, it.state, it.reason, it.first_seen_at, it.decided_at, it.decided_by
    """,
    tables=f"""
        site_approvals AS it
        JOIN sites AS site ON site.id = it.site_id
        JOIN banners AS banner ON banner.id = it.banner_id AND banner.deleted_at IS NULL
        {CAMPAIGN_OF_APPROVAL}
        LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
    """,
    tiebreak="it.banner_id",
)
# On how many pages, and in how many slots, banners are candidates now.
PLACES: Final = """
    SELECT (candidate ->> 'banner_id')::uuid, count(DISTINCT listed.url), count(DISTINCT slot ->> 'slot'),
           min(placement.layout_type)
      FROM shortlists AS listed
      JOIN sites AS site ON site.id = listed.site_id
     CROSS JOIN jsonb_array_elements(listed.slots) AS slot
     CROSS JOIN jsonb_array_elements(slot -> 'candidates') AS candidate
      LEFT JOIN placements AS placement ON placement.slug = slot ->> 'slot'
     WHERE site.public_id = $1 AND listed.expires_at > $3
       AND (candidate ->> 'banner_id')::uuid = ANY ($2::uuid[])
     GROUP BY 1
"""
SITES_COLUMNS: Final = "it.site_id, it.name, it.domain, it.pending, it.approved, it.rejected, it.flagged"
SITES_TABLES: Final = """
    (SELECT owned.public_id AS site_id, owned.name, owned.domain, owner.public_id AS publisher_id,
            count(*) FILTER (WHERE live.state = 'pending') AS pending,
            count(*) FILTER (WHERE live.state = 'approved') AS approved,
            count(*) FILTER (WHERE live.state = 'rejected') AS rejected,
            count(*) FILTER (WHERE live.state = 'flagged') AS flagged
       FROM sites AS owned
       LEFT JOIN publishers AS owner ON owner.id = owned.publisher_id
       LEFT JOIN (SELECT it.site_id, it.state FROM {tables} WHERE {wanted}) AS live ON live.site_id = owned.id
      GROUP BY owned.id, owner.public_id) AS it
"""
# First, as a change of a banner does: it stays as it is until it is decided.
LOCK_BANNERS: Final = """
    SELECT public_id, updated_at FROM banners WHERE public_id = ANY ($1::uuid[]) ORDER BY id FOR SHARE
"""
LOCK: Final = """
    SELECT it.site_id, it.banner_id, banner.public_id, it.state FROM site_approvals AS it
      JOIN sites AS site ON site.id = it.site_id
      JOIN banners AS banner ON banner.id = it.banner_id AND banner.deleted_at IS NULL
     WHERE site.public_id = $1 AND banner.public_id = ANY ($2::uuid[])
     ORDER BY it.banner_id FOR UPDATE OF it
"""
DECIDE: Final = """
    UPDATE site_approvals SET state = $3, reason = $4, decided_at = $5, decided_by = $6
     WHERE site_id = $1 AND banner_id = ANY ($2::integer[])
"""


class Approval(BannerContent, frozen=True, kw_only=True):
    """A banner that was a candidate on a site, with what its publisher needs to decide."""

    banner_id: UUID
    campaign_id: UUID
    campaign_name: str
    advertiser_id: UUID | None
    advertiser_name: str | None
    width: int | None
    height: int | None
    banner_updated_at: datetime
    ad_product_category: str | None
    state: ApprovalState
    reason: str | None
    first_seen_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    decided_by_name: str | None = None  # As far as who asks may know it.
    # Where it is a candidate now, and the layout of one of these slots.
    pages: int = 0
    slots: int = 0
    layout_type: str | None = None

    @property
    def landing_domain(self) -> str | None:
        """Where a click leads; the answer reads it by name."""
        return find_landing_domain(self.cta_url)


class SiteDecisions(msgspec.Struct, frozen=True, kw_only=True):
    """How many banners of a site wait, and how many were decided about."""

    site_id: UUID
    name: str
    domain: str
    pending: int
    approved: int
    rejected: int
    flagged: int


async def list_approvals(  # noqa: PLR0913 - what to list, and for whom
    connection: Connection,
    site_id: SiteId,
    state: ApprovalState | None,
    request: PageRequest,
    *,
    caller: Caller,
    now: datetime,
) -> Listed[Approval]:
    filters = Filters()
    filters.add("site.public_id = {}", site_id)
    filters.add_given("it.state = {}", state)
    filters.add(_write_wanted(filters))
    listed = await fetch_structs(connection, SOURCE, filters, request, Approval)
    rows = await connection.fetch(PLACES, site_id, [one.banner_id for one in listed.items], now)
    names = ("pages", "slots", "layout_type")
    places = {row[0]: dict(zip(names, tuple(row)[1:], strict=True)) for row in rows}
    deciders = [find_subject_id(one.decided_by or "") for one in listed.items]
    people = await read_people(connection, caller, deciders)
    return Listed(
        items=[
            msgspec.structs.replace(
                one,
                decided_by_name=None if decider is None else people.get(decider),
                **places.get(one.banner_id, {}),
            )
            for one, decider in zip(listed.items, deciders, strict=True)
        ],
        total_count=listed.total_count,
    )


async def list_sites(
    connection: Connection, publisher_id: UUID | None, site_id: UUID | None, request: PageRequest
) -> Listed[SiteDecisions]:
    """List sites with the numbers of their decisions; of one publisher, or all."""
    filters = Filters()
    source = RowSource(
        columns=SITES_COLUMNS,
        tables=SITES_TABLES.format(tables=SOURCE.tables, wanted=_write_wanted(filters)),
        tiebreak="it.site_id",
    )
    filters.add_given("it.site_id = {}", site_id)
    filters.add_given("it.publisher_id = {}", publisher_id)
    return await fetch_structs(connection, source, filters, request, SiteDecisions)


def _write_wanted(filters: Filters) -> str:
    """Return the condition that a banner waits only if it could be shown."""
    nodes, blocked = _list_products()
    return WANTED.format(nodes=filters.bind(nodes), blocked=filters.bind(blocked))


@cache
def _list_products() -> tuple[list[str], list[str]]:
    """Return products, each beside itself and all above it."""
    pairs = [
        (one.id, above)
        for one in load_products()
        for above in (one.id, *load_products().list_ancestors(one.id))
    ]
    return [node for node, _ in pairs], [above for _, above in pairs]


async def decide(  # noqa: PLR0913 - all that a decision says
    write: CatalogWrite,
    site: Site,
    banner_ids: Sequence[UUID],
    decision: ApprovalDecision,
    reason: str | None,
    *,
    updated_at: Mapping[UUID, datetime],
) -> tuple[int, list[UUID]]:
    """Decide about banners; return how many changed, and those that were never candidates on the site.

    StaleWriteError if one has changed since a moment of `updated_at`: somebody else's content would be approved.
    """
    for banner_id, at in await write.connection.fetch(LOCK_BANNERS, banner_ids):
        if updated_at.get(banner_id, at) != at:
            raise StaleWriteError(f"The banner {banner_id}")
    rows = await write.connection.fetch(LOCK, site.id, banner_ids)
    known = {row[2] for row in rows}
    unknown = [banner_id for banner_id in banner_ids if banner_id not in known]
    if unknown:
        return 0, unknown
    before, after = MOVES[decision]
    changed = [row for row in rows if ApprovalState(row[3]) in before]
    if changed:
        site_key = changed[0][0]
        keys = [row[1] for row in changed]
        await write.connection.execute(
            DECIDE, site_key, keys, after.value, reason, write.at, write.author.subject
        )
        write.touch(IndexedNoun.SITE, site_key)
        for row in changed:
            subject = AuditSubject(NOUN, f"{site.id}/{row[2]}", site.publisher_id)
            changes = {"state": {"from": row[3], "to": after.value}, "reason": {"from": None, "to": reason}}
            write.entries.append(NewAuditEntry(subject, decision.value, changes))
    return len(changed), []
