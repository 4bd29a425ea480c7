"""Which banners have a frequency cap: only of them it matters how often somebody has seen them."""

from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeAlias

from adloom.core.ids import BannerId
from adloom.events.cursor_store import translate_database_errors
from adloom.runtime.postgres import Pool

CAPPED: Final = """
    SELECT DISTINCT banners.public_id FROM frequency_caps JOIN banners ON banners.id = frequency_caps.banner_id
"""

FindCapped: TypeAlias = Callable[[], Awaitable[Collection[BannerId]]]


class CappedBannerStore:
    """Reads them for each batch: a cap counts from the moment it is made."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self) -> Collection[BannerId]:
        with translate_database_errors("The database does not return frequency caps"):
            return {row[0] for row in await self._pool.fetch(CAPPED)}
