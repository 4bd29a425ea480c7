"""Results of sites, and of direct placements, in Valkey, for delivery: one key a site that ends by itself, a hash of versions, and a notice."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

import msgspec

from adloom.core.ids import PlacementId, SiteId
from adloom.market.results.window import NO_RESULTS, WINDOW, SiteResults
from adloom.runtime.valkey import Valkey

VERSIONS: Final = "adloom:market:results"
KEPT: Final = WINDOW + timedelta(minutes=5)  # While no worker runs, what it published last is used so long.
SITES_AT_ONCE: Final = 200

OwnerT = TypeVar("OwnerT", bound=SiteId | PlacementId)

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(SiteResults).decode


def make_results_key(site_id: SiteId | PlacementId) -> str:
    return f"{VERSIONS}:{site_id}"


async def publish_results(valkey: Valkey, results: Mapping[OwnerT, SiteResults]) -> None:
    """Publish sites; one without results is removed."""
    sites = list(results.items())
    for first in range(0, len(sites), SITES_AT_ONCE):
        async with valkey.pipeline(transaction=False) as at_once:
            # The stubs have each call wait for its own answer.
            pipe = cast("Any", at_once)
            for site_id, one in sites[first : first + SITES_AT_ONCE]:
                if one.banners:
                    pipe.set(make_results_key(site_id), _encode(one), ex=int(KEPT.total_seconds()))
                    pipe.hset(VERSIONS, str(site_id), one.version)
                else:
                    pipe.delete(make_results_key(site_id))
                    pipe.hdel(VERSIONS, str(site_id))
            await at_once.execute()


async def read_results(valkey: Valkey, site_id: SiteId | PlacementId) -> SiteResults:
    blob = cast("bytes | None", await valkey.get(make_results_key(site_id)))
    return NO_RESULTS if blob is None else _decode(blob)


async def read_versions(valkey: Valkey, site_ids: Sequence[OwnerT]) -> dict[OwnerT, int]:
    """Read the versions of sites' results; 0 where there are none."""
    known = await cast("Any", valkey).hmget(VERSIONS, [str(site_id) for site_id in site_ids])
    return {site_id: int(version or 0) for site_id, version in zip(site_ids, known, strict=True)}
