"""Answers that are JSON or CSV, as the client asks."""

from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import Header, Response

JSON: Final = "application/json"
CSV: Final = "text/csv"
# For the `responses` of a route that has a model for its JSON.
ALSO_CSV: Final[dict[int | str, dict[str, Any]]] = {200: {"content": {CSV: {"schema": {"type": "string"}}}}}

AcceptHeader = Annotated[str, Header(include_in_schema=False)]


class SheetFormat(StrEnum):
    """How an answer is written."""

    JSON = "json"
    CSV = "csv"


def wants_csv(chosen: SheetFormat | None, accept: str) -> bool:
    """Return whether a client chose CSV, or by its `Accept` takes CSV and not JSON."""
    if chosen is not None:
        return chosen is SheetFormat.CSV
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return CSV in kinds and JSON not in kinds


def answer_file(body: bytes, media_type: str, name: str) -> Response:
    """Answer what a browser saves under a name."""
    return Response(
        body, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
