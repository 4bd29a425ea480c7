"""Values as COPY takes them: PostgreSQL has them as they were."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final
from uuid import UUID

from adloom.runtime.copy_format import (
    BEGIN,
    END,
    encode_boolean,
    encode_date,
    encode_id,
    encode_integer,
    encode_long,
    encode_moment,
    encode_network,
    encode_short,
    encode_text,
    encode_texts,
)
from adloom.runtime.postgres import Connection, Pool

LAST: Final = datetime(1999, 12, 31, 23, 59, 59, 999_999, UTC)  # Before the server's first.
KINDS: Final[Sequence[tuple[str, Callable[[Any], bytes], list[Any]]]] = [
    ("boolean", encode_boolean, [True, False]),
    ("text", encode_text, ["", "ä€😀", "a\tb\n\\N", None]),
    ("uuid", encode_id, [UUID(int=0), UUID(int=2**128 - 1), None]),
    ("smallint", encode_short, [-(2**15), 2**15 - 1, None]),
    ("integer", encode_integer, [-(2**31), 2**31 - 1, None]),
    ("bigint", encode_long, [-(2**63), 2**63 - 1]),
    ("date", encode_date, [date.min, LAST.date(), date.max]),
    ("timestamptz", encode_moment, [LAST, datetime(2026, 11, 18, 1, 2, 3, 4, UTC)]),
    ("text[]", encode_texts, [["a"], ["a", "ü", ""]]),
]
NETWORKS: Final = ["10.1.2.0/24", "2001:db8::/48", "1.2.3.4", "::1", "10.1.2.3/24", "0.0.0.0/0", "::/0", None]


async def copy(connection: Connection, kind: str, values: Sequence[bytes]) -> list[Any]:
    """Copy values into a column of a kind, and return what it has; networks as text."""
    await connection.execute(f"CREATE TEMPORARY TABLE copied (place integer, value {kind})")
    rows = [b"\0\2" + encode_integer(place) + value for place, value in enumerate(values)]
    await connection.copy_to_table(
        "copied",
        source=bytearray().join([BEGIN, *rows, END]),  # pyright: ignore[reportArgumentType] - its stubs leave out bytes in memory
        format="binary",
    )
    found = await connection.fetch("SELECT value, value::text AS text FROM copied ORDER BY place")
    await connection.execute("DROP TABLE copied")
    return [row["text"] if kind == "inet" else row["value"] for row in found]


async def test_values_come_back_as_they_were(pool: Pool) -> None:
    async with pool.acquire() as connection:
        for kind, encode, values in KINDS:
            assert await copy(connection, kind, [encode(one) for one in values]) == values, kind
        as_text = await connection.fetch(
            "SELECT one::inet::text FROM unnest($1::text[]) WITH ORDINALITY AS it (one, place) ORDER BY place",
            NETWORKS,
        )
        assert await copy(connection, "inet", [encode_network(one) for one in NETWORKS]) == [
            row[0] for row in as_text
        ]
