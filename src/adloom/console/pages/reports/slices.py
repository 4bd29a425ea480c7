"""A page of rows that came all at once, sorted as the table asks. Pure."""

from collections.abc import Mapping, Sequence

from adloom.console.client import Json


def sliced(rows: Sequence[Json], query: Mapping[str, str]) -> Json:
    """Answer as the API answers a page of a list."""
    sort = query.get("sort", "")
    field = sort.removeprefix("-")
    ordered = list(rows)
    if rows and field in rows[0]:
        # What is not known comes last, whatever the order.
        known = [row for row in ordered if row[field] is not None]
        known.sort(key=lambda row: row[field], reverse=sort.startswith("-"))
        ordered = [*known, *(row for row in ordered if row[field] is None)]
    size = int(query.get("pageSize", "25"))
    pages = max(1, -(-len(ordered) // size))
    number = min(max(1, int(query["page"])) if query.get("page", "").isdigit() else 1, pages)
    begin = (number - 1) * size
    return {
        "items": ordered[begin : begin + size],
        "totalCount": len(ordered),
        "page": number,
        "pageSize": size,
        "totalPages": pages,
    }
