"""The catalog as one document over HTTP."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from adloom.catalog.transfer.apply import Import, carried_out
from adloom.catalog.transfer.collect import collected
from adloom.catalog.transfer.document import RawItem, read_json, write_json
from adloom.catalog.transfer.kind import KINDS
from adloom.catalog.transfer.plan import Change
from adloom.catalog.transfer.sheet import read_csv, write_csv
from adloom.core.actor import Role
from adloom.core.errors import FieldProblem, ForbiddenError, UnavailableError, ValidationFailedError
from adloom.resource.api import CurrentCatalog
from adloom.resource.audit.difference import describe_change
from adloom.runtime.http.api.dependencies import CurrentActor, GuardedRoute, Ids, Now
from adloom.runtime.http.api.openapi import NEEDS_A_TOKEN, problems
from adloom.runtime.http.api.shapes import Answer, Body

JSON: Final = "application/json"
CSV: Final = "text/csv"
CHANGES_TOLD_MAX: Final = 1_000
RETRY_SECONDS: Final = 5


class Format(StrEnum):
    """How a document is written."""

    JSON = "json"
    CSV = "csv"


class ExportQuery(Body):
    """How an export is written."""

    format: Format = Format.JSON


class ImportQuery(Body):
    """Whether an import is only tried."""

    dry_run: bool = False


class CountsAnswer(Answer):
    """What becomes of the items of one kind."""

    created: int
    updated: int
    unchanged: int


class ChangeAnswer(Answer):
    """What becomes of one item; a thing that would be made has no id yet, unless the document gives it one."""

    path: str
    kind: str
    action: str
    key: str | None
    id: str | None
    changes: dict[str, Any]


class ImportAnswer(Answer):
    """What an import has changed, or would change; of the changes the first 1000 are told one by one."""

    dry_run: bool
    created: int
    updated: int
    unchanged: int
    counts: dict[str, CountsAnswer]
    changes: Sequence[ChangeAnswer]


class TransferRoute(GuardedRoute):
    """A guarded route whose bodies are documents, read by the route itself."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401 - the framework's own
        super().__init__(path, endpoint, **options)
        if "POST" in set(self.methods or ()):
            lists = {kind.name: {"type": "array", "items": {"type": "object"}} for kind in KINDS}
            content = {
                JSON: {"schema": {"type": "object", "properties": lists}},
                CSV: {"schema": {"type": "string"}},
            }
            self.openapi_extra = {**NEEDS_A_TOKEN, "requestBody": {"required": True, "content": content}}


router = APIRouter(
    prefix="/admin",
    tags=["import and export"],
    route_class=TransferRoute,
    responses=problems(400, 401, 403, 409, 413, 503),
)


@router.get(
    "/export",
    response_class=Response,
    responses={200: {"content": {JSON: {"schema": {"type": "object"}}, CSV: {"schema": {"type": "string"}}}}},
)
async def export_catalog(
    query: Annotated[ExportQuery, Query()], actor: CurrentActor, catalog: CurrentCatalog
) -> Response:
    """Give all that you may see as one document, which an import takes back."""
    lists = await collected(catalog, actor)
    write, media_type = (write_csv, CSV) if query.format is Format.CSV else (write_json, JSON)
    body = await asyncio.to_thread(write, lists)
    disposition = f'attachment; filename="adloom-catalog.{query.format}"'
    return Response(body, media_type=media_type, headers={"Content-Disposition": disposition})


@router.post("/import")
async def import_catalog(  # noqa: PLR0913, PLR0917 - a document, and who sends it when
    request: Request,
    query: Annotated[ImportQuery, Query()],
    actor: CurrentActor,
    catalog: CurrentCatalog,
    ids: Ids,
    now: Now,
) -> ImportAnswer:
    """Make the catalog say what a document says, all of it or nothing; `dryRun` only tells what would change."""
    if actor.role is Role.VIEWER:
        raise ForbiddenError("A viewer may read, but not change anything.")
    with _one_at_a_time(request):
        items = await asyncio.to_thread(_reader(request), await request.body())
        wanted = Import(items=items, actor=actor, ids=ids, now=now, is_dry_run=query.dry_run)
        changes = await carried_out(catalog, wanted)
        return await asyncio.to_thread(_answer, changes, is_dry_run=query.dry_run)


def _reader(request: Request) -> Callable[[bytes], list[RawItem]]:
    match request.headers.get("content-type", "").partition(";")[0].strip().lower():
        case "application/json":
            return read_json
        case "text/csv":
            return read_csv
        case _:
            message = f"must be {JSON} or {CSV}"
            raise ValidationFailedError(
                f"The Content-Type {message}.", errors=[FieldProblem("Content-Type", message)]
            )


@contextmanager
def _one_at_a_time(request: Request) -> Generator[None]:
    """Hold one document of up to 64 MiB in memory, not many."""
    state = request.app.state
    if getattr(state, "is_importing", False):
        raise UnavailableError("Another import is under way.", retry_after_seconds=RETRY_SECONDS)
    state.is_importing = True
    try:
        yield
    finally:
        state.is_importing = False


def _answer(changes: Sequence[Change], *, is_dry_run: bool) -> ImportAnswer:
    counts = {kind.name: {"create": 0, "update": 0, "unchanged": 0} for kind in KINDS}
    told: list[ChangeAnswer] = []
    for change in changes:
        counts[change.kind.name][change.action] += 1
        if change.action != "unchanged" and len(told) < CHANGES_TOLD_MAX:
            told.append(_change_answer(change, is_dry_run=is_dry_run))
    totals = {
        action: sum(count[action] for count in counts.values())
        for action in ("create", "update", "unchanged")
    }
    return ImportAnswer(
        dry_run=is_dry_run,
        created=totals["create"],
        updated=totals["update"],
        unchanged=totals["unchanged"],
        counts={
            name: CountsAnswer(created=count["create"], updated=count["update"], unchanged=count["unchanged"])
            for name, count in counts.items()
            if any(count.values())
        },
        changes=told,
    )


def _change_answer(change: Change, *, is_dry_run: bool) -> ChangeAnswer:
    identity = "/".join(str(getattr(change.after, field)) for field in change.kind.table.identity)
    is_new = change.before is None
    return ChangeAnswer(
        path=change.path,
        kind=change.kind.singular,
        action=change.action,
        key=change.key,
        id=None if is_new and is_dry_run else identity,
        changes={} if is_new else describe_change(change.before, change.after),
    )
