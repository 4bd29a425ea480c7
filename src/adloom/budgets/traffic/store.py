"""SQL of learned shapes: a row for each site, and one for the installation."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from adloom.budgets.traffic.counts import INSTALLATION
from adloom.runtime.postgres import Connection, Pool, raise_if_away
from adloom.schedule.traffic_shape import LearnedShape, TrafficShape

SITES: Final = """
    SELECT id AS key, timezone, coalesce((pacing ->> 'dayDurationSeconds')::integer, 86400) AS day_seconds,
           pacing -> 'weekdayShape' AS weekday, pacing -> 'weekendShape' AS weekend
      FROM sites
"""
READ: Final = "SELECT site_id, learned FROM traffic_shapes"
READ_ONE: Final = "SELECT learned FROM traffic_shapes WHERE site_id = $1"
FOLLOWED: Final = """
    SELECT learned, coalesce(timezone, 'UTC') AS timezone,
           coalesce((pacing ->> 'dayDurationSeconds')::integer, 86400) AS day_seconds
      FROM traffic_shapes LEFT JOIN sites ON sites.id = traffic_shapes.site_id
     WHERE site_id IN ($1, $2) ORDER BY site_id = $1 DESC LIMIT 1
"""
WRITE: Final = """
    INSERT INTO traffic_shapes (site_id, learned, updated_at) VALUES ($1, $2, now())
    ON CONFLICT (site_id) DO UPDATE SET learned = excluded.learned, updated_at = now()
"""
FORGET: Final = "DELETE FROM traffic_shapes WHERE site_id <> 0 AND site_id NOT IN (SELECT id FROM sites)"


class TrafficSite(msgspec.Struct, frozen=True):
    """A site whose traffic is learned, and what people said of its days."""

    key: int
    timezone: str = "UTC"
    day_seconds: int = 86_400
    weekday: tuple[float, ...] | None = None
    weekend: tuple[float, ...] | None = None


async def read_sites(pool: Pool) -> list[TrafficSite]:
    with raise_if_away("Sites cannot be read"):
        rows = await pool.fetch(SITES)
    return [
        TrafficSite(
            row["key"],
            row["timezone"],
            row["day_seconds"],
            _read_hours(row["weekday"]),
            _read_hours(row["weekend"]),
        )
        for row in rows
    ]


async def read_learned(pool: Pool) -> dict[int, LearnedShape]:
    with raise_if_away("Traffic shapes cannot be read"):
        rows = await pool.fetch(READ)
    return {row["site_id"]: _decode(row["learned"]) for row in rows}


async def read_shape(connection: Connection, site_key: int) -> LearnedShape | None:
    text = await connection.fetchval(READ_ONE, site_key)
    return None if text is None else _decode(text)


async def read_followed_shape(connection: Connection, site_key: int | None) -> TrafficShape:
    """Return the shape that a budget follows: of the one site that its campaign runs on, or of the installation."""
    row = await connection.fetchrow(FOLLOWED, INSTALLATION if site_key is None else site_key, INSTALLATION)
    if row is None:
        return TrafficShape()
    return _decode(row["learned"]).build_shape(row["timezone"], row["day_seconds"])


async def write_learned(pool: Pool, learned: Mapping[int, LearnedShape]) -> None:
    rows = [(key, msgspec.json.encode(one).decode()) for key, one in learned.items()]
    with raise_if_away("Traffic shapes cannot be written"):
        await pool.executemany(WRITE, rows)
        await pool.execute(FORGET)


def build_shapes(
    sites: Sequence[TrafficSite], learned: Mapping[int, LearnedShape]
) -> dict[int, TrafficShape]:
    """Return the shapes that budgets follow."""
    known = {site.key: site for site in (TrafficSite(INSTALLATION), *sites)}
    return {
        key: one.build_shape(known[key].timezone, known[key].day_seconds)
        for key, one in learned.items()
        if key in known
    }


def _read_hours(shape: list[float] | None) -> tuple[float, ...] | None:
    return None if shape is None else tuple(map(float, shape))


def _decode(text: str) -> LearnedShape:
    return msgspec.json.decode(text, type=LearnedShape)
