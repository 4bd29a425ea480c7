"""SQL of assets. To add or remove one takes the lock of its bytes: two accounts may have the same file."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.catalog.asset.model import Asset, AssetInUseError, AssetKind, PreparedAsset
from adloom.resource.access import Scope
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection

COLUMNS: Final = """
    it.public_id AS id, owner.public_id AS advertiser_id, it.name, it.kind, it.mime, it.size, it.width, it.height,
    it.sha256, it.keys, it.variants, it.created_at
"""
FROM: Final = "assets AS it LEFT JOIN advertisers AS owner ON owner.id = it.advertiser_id"
SOURCE: Final = RowSource(columns=COLUMNS, tables=FROM, tiebreak="it.id")
LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('asset:' || $1, 0))"
OWNER: Final = "SELECT id FROM advertisers WHERE public_id = $1 AND deleted_at IS NULL FOR KEY SHARE"
USED_BYTES: Final = (
    "SELECT coalesce(sum(size), 0)::bigint FROM assets WHERE advertiser_id IS NOT DISTINCT FROM $1"
)
FIND_SAME: Final = """
    UPDATE assets AS it SET used_at = $3 WHERE it.sha256 = $2 AND it.advertiser_id IS NOT DISTINCT FROM $1
    RETURNING it.public_id
"""
INSERT: Final = """
    INSERT INTO assets (public_id, advertiser_id, name, kind, mime, size, width, height, sha256, keys, variants,
                        created_at, used_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)
"""
# Where something shows a file: addresses have its hash.
ADDRESSES: Final = """
    SELECT primary_image_url AS address FROM banners UNION ALL SELECT mobile_image_url FROM banners
    UNION ALL SELECT video_url FROM banners UNION ALL SELECT fallback_placeholder_url FROM banners
    UNION ALL SELECT variant.value FROM banners, jsonb_each_text(media_variants) AS variant
    UNION ALL SELECT fallback_placeholder_url FROM placements
"""
SHOWN: Final = rf"""
    SELECT DISTINCT found[1] FROM ({ADDRESSES}) AS shown, regexp_matches(address, '/p/([0-9a-f]{{64}})[./]', 'g') AS found
"""  # noqa: S608 - our own names
IS_SHOWN: Final = f"""
    SELECT EXISTS (SELECT FROM ({ADDRESSES}) AS shown, unnest($1::text[]) AS hash WHERE strpos(address, '/p/' || hash) > 0)
"""  # noqa: S608 - our own names
_OF_VARIANT: Final = "split_part(split_part(one.value, '/', 2), '.', 1)"
NOTE_SHOWN: Final = f"""
    UPDATE assets SET used_at = $2
     WHERE sha256 = ANY ($1::text[])
        OR EXISTS (SELECT FROM jsonb_each_text(variants) AS one WHERE {_OF_VARIANT} = ANY ($1))
"""  # noqa: S608 - our own words
UNUSED: Final = "SELECT id, sha256 FROM assets WHERE used_at < $1 ORDER BY used_at LIMIT $2"
# Others were removed meanwhile, and something may have come to show it.
DELETE: Final = f"""
    DELETE FROM assets AS it
     WHERE id = $1 AND used_at < $2 AND NOT EXISTS (
        SELECT FROM ({ADDRESSES}) AS shown, LATERAL (
            SELECT it.sha256 UNION ALL SELECT {_OF_VARIANT} FROM jsonb_each_text(it.variants) AS one
        ) AS own (hash)
         WHERE strpos(address, '/p/' || hash) > 0
     )
    RETURNING keys
"""  # noqa: S608 - our own words
DELETE_ONE: Final = "DELETE FROM assets WHERE public_id = $1 RETURNING keys"
STILL_NEEDED: Final = "SELECT DISTINCT unnest(keys) FROM assets WHERE keys && $1::text[]"


def find_hashes(asset: Asset) -> list[str]:
    """Return the hashes in the addresses of an asset and of its smaller versions."""
    return [asset.sha256, *(key.rpartition("/")[2].partition(".")[0] for key in asset.variants.values())]


async def lock_bytes(connection: Connection, sha256: str) -> None:
    await connection.execute(LOCK, sha256)


async def find_owner(connection: Connection, advertiser_id: UUID) -> int | None:
    return await connection.fetchval(OWNER, advertiser_id)


async def sum_bytes(connection: Connection, owner_key: int | None) -> int:
    return await connection.fetchval(USED_BYTES, owner_key)


async def find_same(
    connection: Connection, owner_key: int | None, sha256: str, *, now: datetime
) -> UUID | None:
    """Return the id of the same file of the same account, which counts as used now."""
    return await connection.fetchval(FIND_SAME, owner_key, sha256, now)


async def insert(  # noqa: PLR0913 - all that a row has
    connection: Connection,
    asset_id: UUID,
    owner_key: int | None,
    name: str,
    asset: PreparedAsset,
    *,
    now: datetime,
) -> None:
    await connection.execute(
        INSERT,
        asset_id,
        owner_key,
        name,
        asset.kind,
        asset.mime,
        asset.size,
        asset.width,
        asset.height,
        asset.sha256,
        [one.key for one in asset.files],
        dict(asset.variants),
        now,
    )


async def find(connection: Connection, scope: Scope, asset_id: UUID) -> Asset | None:
    row = await connection.fetchrow(
        f"SELECT {COLUMNS} FROM {FROM} WHERE it.public_id = $1 AND ($2::uuid IS NULL OR owner.public_id = $2)",  # noqa: S608 - our own names
        asset_id,
        scope.account_id,
    )
    return None if row is None else msgspec.convert(dict(row), Asset)


async def list_assets(
    connection: Connection, scope: Scope, page: PageRequest, *, kind: AssetKind | None, search: str | None
) -> Listed[Asset]:
    filters = Filters()
    filters.add_given("owner.public_id = {}", scope.account_id)
    filters.add_given("it.kind = {}", kind)
    filters.add_search(("it.name",), search)
    return await fetch_structs(connection, SOURCE, filters, page, Asset)


async def check_unshown(connection: Connection, asset: Asset) -> None:
    """Raise AssetInUseError where a banner or a placement shows it; deleted banners may come back."""
    if await connection.fetchval(IS_SHOWN, find_hashes(asset)):
        raise AssetInUseError("A banner or a placement shows this file. Give it another one first.")


async def delete(connection: Connection, asset: Asset) -> list[str]:
    """Delete an asset; return the keys of files that no other needs."""
    return await _find_needless(connection, await connection.fetchval(DELETE_ONE, asset.id) or [])


async def note_shown(connection: Connection, *, now: datetime) -> None:
    """Note that what banners and placements show is in use."""
    hashes = [row[0] for row in await connection.fetch(SHOWN)]
    await connection.execute(NOTE_SHOWN, hashes, now)


async def list_unused(connection: Connection, *, before: datetime, rows_max: int) -> list[tuple[int, str]]:
    return [(row[0], row[1]) for row in await connection.fetch(UNUSED, before, rows_max)]


async def delete_unused(connection: Connection, key: int, *, before: datetime) -> list[str] | None:
    """Delete an asset; return the keys of files that no other needs, or None if it is used by now."""
    keys: list[str] | None = await connection.fetchval(DELETE, key, before)
    return None if keys is None else await _find_needless(connection, keys)


async def _find_needless(connection: Connection, keys: Sequence[str]) -> list[str]:
    needed = {row[0] for row in await connection.fetch(STILL_NEEDED, keys)}
    return [key for key in keys if key not in needed]
