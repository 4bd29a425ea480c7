"""Saved reports over HTTP: those of the person who asks, and their figures."""

import asyncio
import functools
from datetime import date, datetime
from typing import Annotated, Any, ClassVar, Final, Optional
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
from fastapi import Depends, Path, Query, Request, Response, status
from pydantic import Field

from adloom.core.caller import Role
from adloom.core.errors import ConflictError, ForbiddenError, NotFoundError
from adloom.resource.access import EVERYTHING
from adloom.resource.api import CurrentCatalog, make_catalog_router, set_body_type
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, Ids, Now
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, Patch, Text255
from adloom.runtime.http.api.sheets import (
    ALSO_CSV,
    CSV,
    JSON,
    AcceptHeader,
    SheetFormat,
    answer_file,
    wants_csv,
)
from adloom.runtime.jobs.queue import JobQueue
from adloom.runtime.listing import Filters, Listed
from adloom.runtime.postgres import Connection
from adloom.runtime.valkey import VALKEY_AWAY
from adloom.stats.api import CountsUnbound, StatsAnswer, StatsTotals
from adloom.stats.model import describe_counts, write_json
from adloom.stats.saved_report.period import SendSchedule, find_next_due
from adloom.stats.saved_report.report_mail import write_sheet
from adloom.stats.saved_report.resource import SavedReport, saved_reports
from adloom.stats.saved_report.run import UTC_NAME, ReportReader, find_report_zone, name_file, run_report
from adloom.stats.saved_report.send import put_report_mail
from adloom.stats.saved_report.store import ask_for_sending, make_requested_sending

NOT_PUT: Final = "The queue of e-mails did not answer."
OWNER: Final = "SELECT time_zone FROM users WHERE public_id = $1"

SavedReportAnswer: Final = build_answer(
    "SavedReportAnswer",
    "A report with a name. Its figures are those that its owner may see when it is opened or sent.",
    SavedReport,
    next_send_at=(
        Optional[datetime],  # noqa: UP045 - a value, not an annotation
        Field(alias="nextSendAt", description="Null where it is not sent, or cannot be."),
    ),
    can_be_mailed=(
        bool,
        Field(alias="canBeMailed", description="False where the installation sends no e-mail."),
    ),
)


class ReportOwnerNow(msgspec.Struct, frozen=True, kw_only=True):
    """The person who asks, and the time zone that they have chosen; without an id it is a machine, which has no reports."""

    id: UUID | None
    zone: str | None = None


async def _find_owner(caller: CurrentCaller, pool: Database) -> ReportOwnerNow:
    row = None if caller.person_id is None else await pool.fetchrow(OWNER, caller.person_id)
    return (
        ReportOwnerNow(id=None) if row is None else ReportOwnerNow(id=caller.person_id, zone=row["time_zone"])
    )


Owner = Annotated[ReportOwnerNow, Depends(_find_owner)]


async def _require_person(owner: Owner) -> ReportOwnerNow:
    if owner.id is None:
        raise ForbiddenError(
            "Saved reports are of people: log in with an e-mail address. API keys and tokens ask"
            " GET /admin/stats/banners.",
            code="SAVED_REPORT_OF_MACHINE",
        )
    return owner


WritingOwner = Annotated[ReportOwnerNow, Depends(_require_person)]
ReportId = Annotated[UUID, Path(alias="report_id")]


class SavedReportQuery(ListQuery):
    """How a list of saved reports is searched, sorted and paged."""

    SORTABLE: ClassVar[frozenset[str]] = frozenset({"created_at", "updated_at", "name"})

    search: Text255 | None = None


class ReportSheetQuery(Body):
    """How the figures of a report are written."""

    format: Annotated[SheetFormat | None, Field(description="Without it, as `Accept` says.")] = None


class PeriodBefore(Answer):
    """What the period before had in all."""

    first: Annotated[date, Field(alias="from")]
    last: Annotated[date, Field(alias="to")]
    totals: StatsTotals


class ReportStatistics(StatsAnswer):
    """The figures of a saved report as they are now; both days are included."""

    first: Annotated[date, Field(alias="from")]
    last: Annotated[date, Field(alias="to")]
    time_zone: str
    before: Annotated[PeriodBefore | None, Field(description="Where it is compared.")]


router = make_catalog_router(saved_reports.path, tag=saved_reports.tag)


@router.post("", status_code=status.HTTP_201_CREATED, response_model=SavedReportAnswer)
@set_body_type(saved_reports.body)
async def create_saved_report(  # noqa: PLR0913, PLR0917 - what the framework hands in
    body: Body,
    request: Request,
    caller: CurrentCaller,
    owner: WritingOwner,
    catalog: CurrentCatalog,
    ids: Ids,
    now: Now,
) -> Answer:
    """Save a report under a name that you have not used yet."""
    _check_recipients(body, caller.role)
    async with catalog.write() as write:
        report = await saved_reports.create(
            write, EVERYTHING, body, ids=ids, now=now, owner_id=owner.id, scheduled_at=now
        )
    return _answer(request, report, owner, now)


@router.get("", response_model=Page[SavedReportAnswer])
async def list_saved_reports(
    query: Annotated[SavedReportQuery, Query()],
    request: Request,
    owner: Owner,
    catalog: CurrentCatalog,
    now: Now,
) -> Page[Any]:
    """List your saved reports."""
    filters = Filters()
    filters.add_search(["it.name"], query.search)
    # A machine has none, as no row equals null.
    filters.add(f"{saved_reports.table.build_outside_sql('owner_id')} = {{}}", owner.id)
    async with catalog.read() as connection:
        listed = await saved_reports.table.read_page(connection, EVERYTHING, filters, query.page_request)
    shown = [_describe(request, report, owner, now) for report in listed.items]
    return build_page(SavedReportAnswer, Listed(items=shown, total_count=listed.total_count), query)


@router.get("/{report_id}", response_model=SavedReportAnswer)
async def read_saved_report(
    report_id: ReportId, request: Request, owner: Owner, catalog: CurrentCatalog, now: Now
) -> Answer:
    """Read one of your saved reports."""
    async with catalog.read() as connection:
        return _answer(request, await _find_own(connection, report_id, owner), owner, now)


@router.patch("/{report_id}", response_model=SavedReportAnswer)
@set_body_type(saved_reports.patch)
async def change_saved_report(  # noqa: PLR0913, PLR0917 - what the framework hands in
    report_id: ReportId,
    body: Patch,
    request: Request,
    caller: CurrentCaller,
    owner: WritingOwner,
    catalog: CurrentCatalog,
    now: Now,
) -> Answer:
    """Change a saved report, field by field: rename it, or say when it is sent."""
    _check_recipients(body, caller.role)
    async with catalog.write() as write:
        await _find_own(write.connection, report_id, owner)
        report = await saved_reports.change(
            write, EVERYTHING, report_id, lambda before: saved_reports.apply(body, before, now)
        )
    return _answer(request, report, owner, now)


@router.delete("/{report_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_saved_report(
    report_id: ReportId, owner: WritingOwner, catalog: CurrentCatalog, now: Now
) -> None:
    """Delete a saved report; it is not sent any more."""
    async with catalog.write() as write:
        await _find_own(write.connection, report_id, owner)
        await saved_reports.remove(write, EVERYTHING, report_id, now=now)


@router.get("/{report_id}/statistics", response_model=ReportStatistics, responses=ALSO_CSV)
async def read_report_statistics(  # noqa: PLR0913, PLR0917 - all that the route depends on
    report_id: ReportId,
    query: Annotated[ReportSheetQuery, Query()],
    request: Request,
    caller: CurrentCaller,
    owner: Owner,
    catalog: CurrentCatalog,
    pool: Database,
    now: Now,
    counts_unbound: CountsUnbound,
    accept: AcceptHeader = "",
) -> Response:
    """Count what a saved report asks for, today; you see what you may see now. CSV has its columns only."""
    async with catalog.read() as connection:
        definition = (await _find_own(connection, report_id, owner)).definition
    reader = ReportReader(
        caller=caller, zone=find_report_zone(definition, owner.zone), counts_unbound=counts_unbound
    )
    result = await run_report(pool, definition, reader, at=now, now=now)
    if wants_csv(query.format, accept):
        write = functools.partial(
            write_sheet,
            definition,
            result,
            currency=request.app.state.currency.code,
            is_of_publisher=caller.role is Role.PUBLISHER,
        )
        return answer_file(await asyncio.to_thread(write), CSV, name_file(result.days))
    before = None
    if result.days_before is not None and result.totals_before is not None:
        first, last = result.days_before
        before = {"from": first, "to": last, "totals": describe_counts(result.totals_before)}
    about = {"from": result.days[0], "to": result.days[1], "timeZone": result.zone.key, "before": before}
    encode = functools.partial(write_json, definition.group_by, result.rows, result.names, **about)
    return Response(await asyncio.to_thread(encode), media_type=JSON)


@router.post("/{report_id}/send", status_code=status.HTTP_202_ACCEPTED)
async def send_saved_report(  # noqa: PLR0913, PLR0917 - all that the route depends on
    report_id: ReportId,
    request: Request,
    owner: WritingOwner,
    catalog: CurrentCatalog,
    pool: Database,
    ids: Ids,
    now: Now,
) -> None:
    """Send a saved report by e-mail now, in the background; it is still sent when it is due."""
    async with catalog.read() as connection:
        await _find_own(connection, report_id, owner)
    mails: JobQueue | None = request.app.state.mail_queue
    if mails is None:
        raise ConflictError(
            "No e-mail can be sent: ADLOOM_SMTP_URL is not set. An admin sets it.", code="MAIL_NOT_SET_UP"
        )
    request_id = ids.make()
    await ask_for_sending(pool, request_id, report_id, now)
    try:
        await put_report_mail(mails, report_id, request_id, now)
    except VALKEY_AWAY:
        # It may be asked for again at once; if it was put all the same, it is sent.
        await make_requested_sending(pool, request_id).record_failure(NOT_PUT)
        raise


def _check_recipients(body: Body, role: Role) -> None:
    if role is not Role.ADMIN and "recipients" in body.model_fields_set and body.to_fields()["recipients"]:
        raise ForbiddenError(
            "Only an admin may have a report sent to others. Leave `recipients` out: it goes to you.",
            code="SAVED_REPORT_RECIPIENTS",
        )


async def _find_own(connection: Connection, report_id: UUID, owner: ReportOwnerNow) -> SavedReport:
    # Whose it is is checked here: a report is a person's, not an account's.
    report = await saved_reports.table.find(connection, EVERYTHING, report_id)
    if report.owner_id != owner.id:
        raise NotFoundError("There is no saved report with this id.", code="SAVED_REPORT_NOT_FOUND")
    return report


def _answer(request: Request, report: SavedReport, owner: ReportOwnerNow, now: datetime) -> Answer:
    return SavedReportAnswer.model_validate(_describe(request, report, owner, now))


def _describe(
    request: Request, report: SavedReport, owner: ReportOwnerNow, now: datetime
) -> dict[str, object]:
    is_on = request.app.state.mail_queue is not None
    next_send_at = None
    if report.send_every is not None and is_on:
        schedule = SendSchedule(
            every=report.send_every,
            weekday=report.send_weekday,
            hour=report.send_hour,
            zone=ZoneInfo(owner.zone or UTC_NAME),
        )
        next_send_at = find_next_due(schedule, now).at
    fields = msgspec.structs.asdict(report)
    return {**fields, "next_send_at": next_send_at, "can_be_mailed": is_on}
