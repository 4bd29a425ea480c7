"""The market's tables: what its actors record, and what they are rebuilt from when they wake."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from adloom.budgets.campaign.demand import DIRECTORY, CampaignDemand
from adloom.core.ids import SiteId
from adloom.market.auctioneer.floors import LATE_TICKS_MAX, FloorRow
from adloom.market.messages import (
    CategoryDemand,
    CategoryVersionRow,
    DemandRow,
    LoadDemand,
    LoadResults,
    RecordResults,
    ResultsRow,
)
from adloom.market.routing import AUCTIONEER, BIDDER, RANKER, make_ranker_address
from adloom.market.shortlist.model import ApprovalSeen, PageShortlists
from adloom.market.site_store import load_auctioneer
from adloom.runtime.actors.actor import Address, FencedOutError
from adloom.runtime.postgres import Connection, Pool, raise_if_away

BEGIN: Final = """
    INSERT INTO market_terms AS it (term) VALUES (1) ON CONFLICT (is_only) DO UPDATE SET term = it.term + 1 RETURNING term
"""
# Shared: the next leader waits for writes that have begun, and reads what they have written.
CURRENT: Final = "SELECT term FROM market_terms FOR SHARE"
SET_DEMAND: Final = """
    INSERT INTO contextual_demand AS it (campaign_id, version, demand)
    SELECT campaign_id, version, demand::jsonb
      FROM unnest($1::uuid[], $2::bigint[], $3::text[]) AS said (campaign_id, version, demand)
    ON CONFLICT (campaign_id) DO UPDATE SET version = EXCLUDED.version, demand = EXCLUDED.demand
     WHERE it.version <= EXCLUDED.version
"""
SET_VERSIONS: Final = """
    INSERT INTO demand_versions AS it (category, version) SELECT * FROM unnest($1::text[], $2::bigint[])
    ON CONFLICT (category) DO UPDATE SET version = EXCLUDED.version, changed_at = now()
     WHERE it.version < EXCLUDED.version
"""
SET_RESULTS: Final = """
    INSERT INTO category_results AS it (category, site, impressions, clicks, at, through)
    SELECT * FROM unnest($1::text[], $2::text[], $3::float8[], $4::float8[], $5::timestamptz[], $6::bigint[])
    ON CONFLICT (category, site) DO UPDATE
       SET impressions = EXCLUDED.impressions, clicks = EXCLUDED.clicks, at = EXCLUDED.at, through = EXCLUDED.through
     WHERE it.through <= EXCLUDED.through
"""
SET_SHORTLISTS: Final = """
    INSERT INTO shortlists AS it (site_id, url, version, slots, updated_at, expires_at)
    SELECT site.id, said.url, said.version, said.slots::jsonb, said.updated_at, said.expires_at
      FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::timestamptz[], $6::timestamptz[])
           AS said (site_id, url, version, slots, updated_at, expires_at)
      JOIN sites AS site ON site.public_id = said.site_id
    ON CONFLICT (site_id, url) DO UPDATE
       SET version = EXCLUDED.version, slots = EXCLUDED.slots, updated_at = EXCLUDED.updated_at,
           expires_at = EXCLUDED.expires_at
     WHERE it.version < EXCLUDED.version
"""
# A decision that was made meanwhile stays; what waited for one is approved where the site's mode says so by now.
ADD_APPROVALS: Final = """
    INSERT INTO site_approvals AS it
           (site_id, banner_id, campaign_id, state, first_seen_at, decided_at, decided_by)
    SELECT site.id, banner.id, campaign.id, said.state, said.at,
           CASE said.state WHEN 'approved' THEN said.at END,
           CASE said.state WHEN 'approved' THEN site.approval_mode::text END
      FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::timestamptz[])
           AS said (site_id, banner_id, campaign_id, state, at)
      JOIN sites AS site ON site.public_id = said.site_id
      JOIN banners AS banner ON banner.public_id = said.banner_id
      JOIN campaigns AS campaign ON campaign.public_id = said.campaign_id
    ON CONFLICT (site_id, banner_id) DO UPDATE
       SET state = EXCLUDED.state, decided_at = EXCLUDED.decided_at, decided_by = EXCLUDED.decided_by
     WHERE it.state = 'pending' AND it.decided_at IS NULL AND EXCLUDED.state = 'approved'
"""
SET_FLOORS: Final = f"""
    INSERT INTO category_floors AS it (site_id, category, tick, state)
    SELECT site.id, said.category, said.tick, said.state::jsonb
      FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[]) AS said (site_id, category, tick, state)
      JOIN sites AS site ON site.public_id = said.site_id
    ON CONFLICT (site_id, category) DO UPDATE
       SET tick = EXCLUDED.tick, state = EXCLUDED.state, updated_at = now()
     WHERE it.tick < EXCLUDED.tick OR it.tick > EXCLUDED.tick + {LATE_TICKS_MAX}
"""  # noqa: S608 - our own number
ALL_DEMAND: Final = "SELECT demand::text FROM contextual_demand WHERE demand IS NOT NULL"
DEMAND_OF: Final = """
    SELECT demand::text FROM contextual_demand WHERE demand IS NOT NULL AND demand -> 'wanted' ?| $1::text[]
"""
VERSIONS: Final = "SELECT category, version FROM demand_versions"
RESULTS: Final = """
    SELECT category, site, impressions, clicks, at, through FROM category_results
      JOIN unnest($1::text[], $2::text[]) AS asked (category, site) USING (category, site)
"""
# What was counted since a ranker's last record.
RESULTS_SINCE: Final = """
    SELECT asked.category, asked.site, sum(it.impressions)::integer, sum(it.clicks)::integer, max(it.minute), max(it.id)
      FROM unnest($1::text[], $2::text[]) AS asked (category, site)
      LEFT JOIN category_results AS known USING (category, site)
      JOIN contextual_results AS it ON it.category = asked.category AND it.id > coalesce(known.through, 0)
      JOIN sites ON sites.id = it.site_id AND asked.site IN ('*', sites.public_id::text)
     GROUP BY 1, 2
"""


class MarketTerm:
    """The term of this worker, once it leads: it fences out a worker that no longer does.

    Actors of the market keep no states of their own whose versions could do that. Each worker that begins to lead
    counts a term, and what is recorded in an earlier one is refused: a worker that was suspended for longer than its
    lock lasts finds out with its first write.
    """

    def __init__(self) -> None:
        self._term = 0

    async def begin(self, pool: Pool) -> None:
        with raise_if_away("No term of the market can begin"):
            self._term = int(await pool.fetchval(BEGIN))

    async def check(self, connection: Connection) -> None:
        """Raise FencedOutError if another worker leads by now; in the transaction of what is written."""
        current = await connection.fetchval(CURRENT)
        if current != self._term:
            raise FencedOutError(f"Term {current} of the market has begun; this worker's was {self._term}.")


class StoredDemand(msgspec.Struct, frozen=True):
    """A campaign's demand as a row has it; `wanted` is indexed."""

    demand: CampaignDemand
    wanted: tuple[str, ...]


class RecordTable(msgspec.Struct, frozen=True):
    """How records of a kind are written: the fields that tell them apart, the statement, and what it gets of each."""

    key: tuple[str, ...]
    statement: str
    list_values: Callable[[Any], tuple[object, ...]]


_decode_demand: Final = msgspec.json.Decoder(StoredDemand).decode


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _encode_demand(demand: CampaignDemand | None) -> str | None:
    return None if demand is None else _encode(StoredDemand(demand, tuple(sorted(demand.wanted))))


TABLES: Final[Mapping[type, RecordTable]] = {
    DemandRow: RecordTable(
        ("campaign_id",), SET_DEMAND, lambda row: (row.campaign_id, row.version, _encode_demand(row.demand))
    ),
    CategoryVersionRow: RecordTable(("category",), SET_VERSIONS, lambda row: (row.category, row.version)),
    ResultsRow: RecordTable(("category", "site"), SET_RESULTS, msgspec.structs.astuple),
    PageShortlists: RecordTable(
        ("site_id", "url"),
        SET_SHORTLISTS,
        lambda row: (row.site_id, row.url, row.version, _encode(row.slots), row.updated_at, row.expires_at),
    ),
    ApprovalSeen: RecordTable(
        ("site_id", "banner_id"),
        ADD_APPROVALS,
        lambda row: (row.site_id, row.banner_id, row.campaign_id, row.state.value, row.at),
    ),
    FloorRow: RecordTable(
        ("site_id", "category"),
        SET_FLOORS,
        lambda row: (row.site_id, row.category, row.tick, _encode(row.state)),
    ),
}


class MarketWriter:
    """Writes what the market's actors record; of several rows of one thing the last counts.

    A worker that leads no more writes nothing: it raises FencedOutError.
    """

    def __init__(self, term: MarketTerm | None = None) -> None:
        self._term = term

    async def write(self, connection: Connection, records: Sequence[msgspec.Struct]) -> None:
        if self._term is not None:
            await self._term.check(connection)
        by_type: dict[type, dict[object, Any]] = {}
        for record in records:
            kind = type(record)
            if kind not in TABLES:
                raise TypeError(f"No table takes a {kind.__name__}.")
            key = tuple(getattr(record, field) for field in TABLES[kind].key)
            by_type.setdefault(kind, {})[key] = record
        for kind, table in TABLES.items():
            if rows := by_type.get(kind):
                # Always in the same order, so that two writers of the same rows cannot deadlock.
                values = [table.list_values(rows[key]) for key in sorted(rows, key=repr)]
                await connection.execute(table.statement, *map(list, zip(*values, strict=True)))


class MarketTables:
    """What actors of the market get before their first message."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        found: dict[Address, Sequence[msgspec.Struct]] = {}
        by_kind: dict[str, list[Address]] = {}
        for address in addresses:
            by_kind.setdefault(address.kind, []).append(address)
        with raise_if_away("The market's tables cannot be read"):
            async with self._pool.acquire() as connection:
                if DIRECTORY in addresses:
                    found[DIRECTORY] = [await _load_directory(connection)]
                found |= await _load_bidders(connection, by_kind.get(BIDDER, ()))
                found |= await _load_rankers(connection, by_kind.get(RANKER, ()))
                for address in by_kind.get(AUCTIONEER, ()):
                    found[address] = await load_auctioneer(connection, SiteId(UUID(address.key)))
        return found


async def load_demands(connection: Connection, categories: Sequence[str]) -> list[CampaignDemand]:
    """Read the campaigns that want one of some categories."""
    return [_decode_demand(row[0]).demand for row in await connection.fetch(DEMAND_OF, categories)]


async def _load_directory(connection: Connection) -> LoadDemand:
    rows = await connection.fetch(ALL_DEMAND)
    return LoadDemand(tuple(_decode_demand(row[0]).demand for row in rows), await _load_versions(connection))


async def _load_versions(connection: Connection) -> dict[str, int]:
    return {row["category"]: row["version"] for row in await connection.fetch(VERSIONS)}


async def _load_bidders(
    connection: Connection, addresses: Sequence[Address]
) -> dict[Address, Sequence[msgspec.Struct]]:
    if not addresses:
        return {}
    categories = {address: address.key.rpartition("|")[0] for address in addresses}
    wanted = sorted(set(categories.values()))
    versions = await _load_versions(connection)
    by_category: dict[str, list[CampaignDemand]] = {category: [] for category in wanted}
    for demand in await load_demands(connection, wanted):
        for category in demand.wanted:
            if category in by_category:
                by_category[category].append(demand)
    seeds = {
        category: CategoryDemand(category, versions.get(category, 0), tuple(campaigns))
        for category, campaigns in by_category.items()
    }
    return {address: [seeds[category]] for address, category in categories.items()}


async def _load_rankers(
    connection: Connection, addresses: Iterable[Address]
) -> dict[Address, Sequence[msgspec.Struct]]:
    asked = [address.key.rpartition("|") for address in addresses]
    if not asked:
        return {}
    columns = [one[0] for one in asked], [one[2] for one in asked]
    found: dict[Address, list[msgspec.Struct]] = {}
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        for category, site, *known in await connection.fetch(RESULTS, *columns):
            found.setdefault(make_ranker_address(category, site), []).append(LoadResults(*known))
        for category, site, *more in await connection.fetch(RESULTS_SINCE, *columns):
            found.setdefault(make_ranker_address(category, site), []).append(RecordResults(*more))
    return dict(found)
