"""How a delivery process is doing: it serves while it has an index and can reach the ledger."""

from http import HTTPStatus

import msgspec

from adloom.core.clock import Clock
from adloom.delivery.publish import IndexKeeper
from adloom.runtime import postgres, valkey
from adloom.runtime.http.plain import PlainAnswer


class IndexCheck(msgspec.Struct, frozen=True, rename="camel"):
    """Which version of the catalog is served, and how long ago it was last known to be the newest."""

    status: str
    version: int | None
    age_seconds: float | None


class Checks(msgspec.Struct, frozen=True):
    """The parts that delivery leans on."""

    postgres: str
    valkey: str
    index: IndexCheck


class Health(msgspec.Struct, frozen=True):
    """The whole, and its parts."""

    status: str
    checks: Checks


class DeliveryHealth:
    """Answers the health routes that look further than the process itself."""

    def __init__(self, keeper: IndexKeeper, pool: postgres.Pool, client: valkey.Valkey, clock: Clock) -> None:
        self._keeper = keeper
        self._pool = pool
        self._client = client
        self._clock = clock

    async def ready(self) -> PlainAnswer:
        """Answer 200 while ads can be served and events accepted.

        The database is looked at but not counted: without it the index grows old, and serving goes on.
        """
        has_ledger = await valkey.is_reachable(self._client)
        has_index = self._keeper.version is not None
        checks = Checks(
            postgres=_word(is_well=await postgres.is_reachable(self._pool)),
            valkey=_word(is_well=has_ledger),
            index=self._index(),
        )
        status = HTTPStatus.OK if has_ledger and has_index else HTTPStatus.SERVICE_UNAVAILABLE
        health = Health(status="ok" if status is HTTPStatus.OK else "unavailable", checks=checks)
        return PlainAnswer(status, msgspec.json.encode(health))

    def _index(self) -> IndexCheck:
        age = self._keeper.age(self._clock.now())
        return IndexCheck(
            status=_word(is_well=age is not None),
            version=self._keeper.version,
            age_seconds=None if age is None else round(age.total_seconds(), 3),
        )


def _word(*, is_well: bool) -> str:
    return "ok" if is_well else "unavailable"
