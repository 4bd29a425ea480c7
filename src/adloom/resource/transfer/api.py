"""Export and import over HTTP."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, Final

import structlog
from fastapi import APIRouter, Query, Request, Response

from adloom.core.caller import Caller, Role
from adloom.core.errors import BodyTooLargeError, ForbiddenError, UnavailableError, make_field_error
from adloom.resource.api import CurrentCatalog
from adloom.resource.audit.difference import show_value
from adloom.resource.spec import DocumentLists
from adloom.resource.transfer.document import ImportProgress, ImportStep, RawItem, read_json, write_json
from adloom.resource.transfer.exchange import Exchange, ImportRequest
from adloom.resource.transfer.plan import ImportChange
from adloom.resource.transfer.schema import EXAMPLE, SCHEMA_NAME
from adloom.resource.transfer.sheet import SEEN_COLUMN, read_csv, write_csv
from adloom.runtime.http.api import sheets
from adloom.runtime.http.api.dependencies import CurrentCaller, Ids, Now, make_router
from adloom.runtime.http.api.document import REF
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.http.api.sheets import CSV, JSON, SheetFormat, answer_file
from adloom.runtime.settings import QuotaSettings

CHANGES_LISTED_MAX: Final = 1_000
RETRY_SECONDS: Final = 5
IMPORTS_AT_ONCE_MAX: Final = 4
ACCOUNT_BYTES_MAX: Final = 16 * 1024 * 1024
LOGGED_SECONDS: Final = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class ExportQuery(Body):
    """How an export is written."""

    format: SheetFormat = SheetFormat.JSON


class ImportQuery(Body):
    """Whether an import is only tried."""

    dry_run: bool = False


class CountsAnswer(Answer):
    """What becomes of the items of one list."""

    created: int
    updated: int
    unchanged: int


class ChangeAnswer(Answer):
    """What becomes of one item; a new one has no id in a dry run, unless the document gives it one."""

    path: str
    kind: str
    action: str
    key: str | None
    id: str | None
    changes: dict[str, Any]


class ImportAnswer(Answer):
    """What an import has changed, or would change; the first 1000 changes are listed one by one."""

    dry_run: bool
    created: int
    updated: int
    unchanged: int
    counts: dict[str, CountsAnswer]
    changes: Sequence[ChangeAnswer]


class ImportProgressAnswer(Answer):
    """How far your import is: its step, and how many items of how many; null and 0 if none is under way."""

    step: ImportStep | None
    done: int
    total: int


def build_transfer_router(exchange: Exchange) -> APIRouter:
    """Make the routes that export and import some nouns as one document."""
    lists = exchange.lists
    # The schema itself takes a third of a second to make, so that it is added only where it is shown.
    document = {"schema": {"$ref": f"{REF}{SCHEMA_NAME}"}, "example": EXAMPLE}
    body = {
        "required": True,
        # Not as a second content: generators of clients know no body of that type.
        "description": f"The lists that an export has, or a sheet with the Content-Type {CSV}.",
        "content": {JSON: document},
    }
    router = make_router("/admin", "import and export", 400, 401, 403, 409, 413, 503)

    @router.get(
        "/export",
        response_class=Response,
        responses={200: {"content": {JSON: document, CSV: {"schema": {"type": "string"}}}}},
    )
    async def export_catalog(
        query: Annotated[ExportQuery, Query()], caller: CurrentCaller, catalog: CurrentCatalog
    ) -> Response:
        """Return all that you may see as one document, which an import takes back."""
        exported = await exchange.export(catalog, caller)
        write, media_type = (write_csv, CSV) if query.format is SheetFormat.CSV else (write_json, JSON)
        body = await asyncio.to_thread(write, exported)
        return answer_file(body, media_type, f"adloom-catalog.{query.format}")

    # The body is a document that the route parses itself, so that the framework cannot describe it.
    @router.post("/import", openapi_extra={"requestBody": body})
    async def import_catalog(  # noqa: PLR0913, PLR0917 - a document, and who sends it when
        request: Request,
        query: Annotated[ImportQuery, Query()],
        caller: CurrentCaller,
        catalog: CurrentCatalog,
        ids: Ids,
        now: Now,
    ) -> ImportAnswer:
        """Make the catalog agree with a document, all of it or nothing; `dryRun` only says what would change."""
        if caller.role is Role.VIEWER:
            raise ForbiddenError("A viewer may read, but not change anything.")
        with _limit_to_one_per_caller(request, caller) as progress:
            # Read before the turn is taken: a client that sends slowly keeps no other waiting.
            parse, body = _choose_parser(request), await _read_body(request, caller)
            async with _turn(request, progress):
                items = await asyncio.to_thread(parse, body, lists)
                _check_size(request, caller, len(items))
                wanted = ImportRequest(items=items, caller=caller, ids=ids, now=now, is_dry_run=query.dry_run)
                changes = await exchange.import_document(catalog, wanted, progress)
                return await asyncio.to_thread(_answer, lists, changes, is_dry_run=query.dry_run)

    @router.get("/import")
    async def show_progress(request: Request, caller: CurrentCaller) -> ImportProgressAnswer:
        """Return how far your import is, as long as it is under way; admins have one for all of them."""
        progress = _get_turns(request).callers.get(_find_key(caller))
        if progress is None:
            return ImportProgressAnswer(step=None, done=0, total=0)
        return ImportProgressAnswer(step=progress.step, done=progress.done, total=progress.total)

    return router


def _choose_parser(request: Request) -> Callable[[bytes, DocumentLists], list[RawItem]]:
    match request.headers.get("content-type", "").partition(";")[0].strip().lower():
        case sheets.JSON:
            return read_json
        case sheets.CSV:
            return read_csv
        case _:
            message = f"must be {JSON} or {CSV}"
            raise make_field_error("Content-Type", message, f"The Content-Type {message}.")


class ImportTurns:
    """The imports that are under way: one a caller, and a few in all, because each holds its document in memory."""

    def __init__(self) -> None:
        self.callers: dict[str, ImportProgress] = {}
        self.running = 0


def _get_turns(request: Request) -> ImportTurns:
    state = request.app.state
    if not hasattr(state, "import_turns"):
        state.import_turns = ImportTurns()
    return state.import_turns


@contextmanager
def _limit_to_one_per_caller(request: Request, caller: Caller) -> Generator[ImportProgress]:
    turns, key = _get_turns(request), _find_key(caller)
    if key in turns.callers:
        raise UnavailableError("Another import of yours is under way.", retry_after_seconds=RETRY_SECONDS)
    turns.callers[key] = progress = ImportProgress()
    try:
        yield progress
    finally:
        del turns.callers[key]


def _find_key(caller: Caller) -> str:
    return str(caller.account_id or "")


@asynccontextmanager
async def _turn(request: Request, progress: ImportProgress) -> AsyncGenerator[None]:
    turns = _get_turns(request)
    if turns.running >= IMPORTS_AT_ONCE_MAX:
        raise UnavailableError("Other imports are under way.", retry_after_seconds=RETRY_SECONDS)
    turns.running += 1
    lines = asyncio.create_task(_log_each_second(progress))
    try:
        yield
    finally:
        turns.running -= 1
        lines.cancel()


async def _log_each_second(progress: ImportProgress) -> None:
    while True:
        await asyncio.sleep(LOGGED_SECONDS)
        log.info("import_under_way", step=progress.step, done=progress.done, total=progress.total)


async def _read_body(request: Request, caller: Caller) -> bytes:
    """Read a document; an account's must be smaller, because many accounts may send one at the same time."""
    if caller.account_id is None:
        return await request.body()
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > ACCOUNT_BYTES_MAX:
            raise BodyTooLargeError(
                f"The document is over {ACCOUNT_BYTES_MAX} bytes, which is what an account may import at once."
                " Send it in parts."
            )
    return bytes(body)


def _check_size(request: Request, caller: Caller, count: int) -> None:
    quotas: QuotaSettings = request.app.state.quotas
    if caller.account_id is not None and count > quotas.import_items_max:
        message = f"must have at most {quotas.import_items_max} items"
        raise make_field_error("body", message, f"The document of an account {message}. Send it in parts.")


def _answer(lists: DocumentLists, changes: Sequence[ImportChange], *, is_dry_run: bool) -> ImportAnswer:
    counts = {spec.list_name: {"create": 0, "update": 0, "unchanged": 0} for spec in lists.specs}
    listed: list[ChangeAnswer] = []
    for change in changes:
        counts[change.spec.list_name][change.action] += 1
        if change.action != "unchanged" and len(listed) < CHANGES_LISTED_MAX:
            listed.append(_change_answer(change, is_dry_run=is_dry_run))
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
        changes=listed,
    )


def _change_answer(change: ImportChange, *, is_dry_run: bool) -> ChangeAnswer:
    identity = "/".join(map(str, change.spec.identify(change.after)))
    is_new = change.before is None
    return ChangeAnswer(
        path=change.path,
        kind=change.spec.kind,
        action=change.action,
        key=change.key,
        id=None if is_new and is_dry_run else identity,
        changes={} if is_new else _describe_change(change),
    )


def _describe_change(change: ImportChange) -> dict[str, Any]:
    """Describe a change by the names and values of the API: `bidAmount` is 2.5, and not 2,500,000 micros."""
    before, after = (
        change.spec.answer.model_validate(one).model_dump(mode="json")
        for one in (change.before, change.after)
    )
    return {
        name: {"from": show_value(name, before[name]), "to": show_value(name, after[name])}
        for name in before
        if before[name] != after[name] and name != SEEN_COLUMN
    }
