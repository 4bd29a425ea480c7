"""Lists from the database: conditions with bound values, one page, and the total."""

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import msgspec

from adloom.runtime.postgres import Connection, Record

T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound=msgspec.Struct)

PAGE_SIZE_DEFAULT: Final = 20
PAGE_SIZE_MAX: Final = 100
PAGE_MAX: Final = 1_000_000  # Beyond, offsets would leave the range of the database.


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The requested part of a list; `sort` is a column that the list may be sorted by, or has an SQL `expression`.

    An expression is never a client's text. Rows for which it is null come last, whatever the order.
    """

    number: int = 1
    size: int = PAGE_SIZE_DEFAULT
    sort: str
    expression: str = ""
    is_descending: bool = False


class Listed(msgspec.Struct, Generic[T_co], frozen=True, kw_only=True):
    """One page of a list."""

    items: Sequence[T_co]
    total_count: int


class RowSource(msgspec.Struct, frozen=True, kw_only=True):
    """The SQL of a list; never a client's text.

    `it` is the table that is listed; `tiebreak` orders rows that are alike in what they are sorted by.
    """

    columns: str
    tables: str
    tiebreak: str


class Filters:
    """Conditions of a query, each with its values; `{}` in a condition is where a value goes."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._conditions: list[str] = []

    def add(self, condition: str, *values: object) -> None:
        self._conditions.append(condition.format(*(self.bind(value) for value in values)))

    def add_given(self, condition: str, value: object | None) -> None:
        if value is not None:
            self.add(condition, value)

    def add_search(self, columns: Sequence[str], text: str | None) -> None:
        """Add a condition that one of the columns contains a text, ignoring case; `{}` makes a condition of its own."""
        if text:
            pattern = self.bind(f"%{escape_like(text)}%")
            ways = [
                column.format(pattern) if "{}" in column else f"{column} ILIKE {pattern}"
                for column in columns
            ]
            self._conditions.append("(" + " OR ".join(ways) + ")")

    def bind(self, value: object) -> str:
        self.values.append(value)
        return f"${len(self.values)}"

    @property
    def sql(self) -> str:
        """The conditions as they follow a WHERE."""
        return " AND ".join(self._conditions) or "true"


def escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


async def fetch_page(
    connection: Connection,
    source: RowSource,
    filters: Filters,
    page: PageRequest,
    *,
    total_count: int | None = None,
) -> Listed[Record]:
    """Read one page; the total is counted unless it is known."""
    where = f"FROM {source.tables} WHERE {filters.sql}"
    if total_count is None:
        total_count = await connection.fetchval(f"SELECT count(*) {where}", *filters.values)
        assert total_count is not None
    way = "DESC" if page.is_descending else "ASC"
    first = f"{page.expression} {way} NULLS LAST" if page.expression else f"it.{page.sort} {way}"
    rows = await connection.fetch(
        f"SELECT {source.columns} {where} ORDER BY {first}, {source.tiebreak} {way}"
        f" LIMIT {page.size:d} OFFSET {(page.number - 1) * page.size:d}",
        *filters.values,
    )
    return Listed(items=rows, total_count=total_count)


async def fetch_structs(  # noqa: PLR0913, PLR0917 - as `fetch_page`, and the struct
    connection: Connection,
    source: RowSource,
    filters: Filters,
    page: PageRequest,
    struct: type[S],
    total_count: int | None = None,
) -> Listed[S]:
    """Read one page as structs, whose fields are the columns."""
    rows = await fetch_page(connection, source, filters, page, total_count=total_count)
    return Listed(
        items=[msgspec.convert(dict(row), struct) for row in rows.items], total_count=rows.total_count
    )
