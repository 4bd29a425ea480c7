"""Saved reports as a noun of the API: each is of one person, and only that person sees it."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Annotated, ClassVar, Final
from uuid import UUID

import msgspec
from pydantic import AfterValidator, Field

from adloom.core.errors import ConflictError, make_taken_error
from adloom.resource.access import Scope
from adloom.resource.changes import CatalogWrite
from adloom.resource.resource import Resource
from adloom.resource.shapes import TimeZone
from adloom.runtime.http.api.shapes import TAKES_WHOLE_FLOATS, EmailAddress, Flag, Name
from adloom.stats.api import Country, Device
from adloom.stats.model import Grouping
from adloom.stats.saved_report.period import ReportPeriod, SendEvery
from adloom.stats.saved_report.run import Figure, ReportDefinition

REPORTS_MAX: Final = 200  # Of one person.
RECIPIENTS_MAX: Final = 20
COUNT_OF: Final = """
    SELECT count(*) FROM saved_reports AS it JOIN users AS owner ON owner.id = it.owner_id WHERE owner.public_id = $1
"""
HOUR_DEFAULT: Final = 8


def _require_some(values: tuple[object, ...]) -> tuple[object, ...]:
    # Not Pydantic's own rule: it would complain about a value that is wrong as one that is missing.
    if not values:
        raise ValueError("must name at least one")
    return values


def _drop_repeated(values: tuple[object, ...]) -> tuple[object, ...]:
    if len(set(values)) < len(values):
        raise ValueError("must name each only once")
    return values


class SavedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report with a name; its period is counted from the day on which it is opened or sent."""

    virtual: ClassVar[Mapping[str, str]] = {
        "last_sent_at": """greatest(
            (SELECT max(sent_at) FROM report_sendings WHERE report_id = it.id),
            (SELECT max(sent_at) FROM report_requests WHERE report_id = it.id)
        )""",
        # Of what was asked for only what has an end: an e-mail that is being sent has not failed.
        "last_failure": """(
            SELECT failure FROM (
                SELECT due_on AS day, NULL AS asked_at, failure FROM report_sendings WHERE report_id = it.id
                 UNION ALL
                SELECT asked_at::date, asked_at, failure FROM report_requests
                 WHERE report_id = it.id AND (sent_at IS NOT NULL OR failure IS NOT NULL)
            ) AS attempts ORDER BY day DESC, asked_at DESC NULLS LAST LIMIT 1
        )""",
    }

    id: UUID
    owner_id: UUID
    name: Name
    group_by: Annotated[
        tuple[Grouping, ...],
        AfterValidator(_require_some),
        AfterValidator(_drop_repeated),
        Field(json_schema_extra={"minItems": 1}),
    ] = (Grouping.DAY,)
    period: ReportPeriod = ReportPeriod.LAST_7_DAYS
    is_compared: Annotated[Flag, Field(description="With the period before.")] = False
    campaign_id: UUID | None = None
    placement_id: UUID | None = None
    banner_id: UUID | None = None
    country: Annotated[Country | None, Field(description="Two letters, or `unknown`.")] = None
    device: Device | None = None
    columns: Annotated[
        tuple[Figure, ...], Field(description="Without any, all of them."), AfterValidator(_drop_repeated)
    ] = ()
    metric: Annotated[Figure, Field(description="What its chart is of.")] = Figure.IMPRESSIONS
    time_zone: Annotated[TimeZone | None, Field(description="Of its days; null is that of its owner.")] = None
    send_every: Annotated[
        SendEvery | None,
        Field(description="How often it is sent by e-mail; null is never, monthly on the first day."),
    ] = None
    send_weekday: Annotated[
        int, Field(strict=True, ge=1, le=7, description="Of weekly ones; 1 is Monday."), TAKES_WHOLE_FLOATS
    ] = 1
    send_hour: Annotated[
        int, Field(strict=True, ge=0, le=23, description="In its owner's time zone."), TAKES_WHOLE_FLOATS
    ] = HOUR_DEFAULT
    recipients: Annotated[
        tuple[EmailAddress, ...],
        Field(
            max_length=RECIPIENTS_MAX,
            description="Who gets it besides its owner, whose figures they see. Only admins name some.",
        ),
        AfterValidator(_drop_repeated),
    ] = ()
    scheduled_at: Annotated[datetime, Field(description="When its schedule was set.")]
    last_sent_at: datetime | None = None
    last_failure: Annotated[
        str | None, Field(description="Why it was not sent the last time; null if it was.")
    ] = None
    created_at: datetime
    updated_at: datetime

    @property
    def definition(self) -> ReportDefinition:
        """The question itself."""
        return ReportDefinition(
            **{field: getattr(self, field) for field in ReportDefinition.__struct_fields__}
        )


class ReportOwner(msgspec.Struct, frozen=True, kw_only=True):
    """The account of a person, as a report names it."""

    id: UUID


owners = Resource(struct=ReportOwner, name="account", noun="user", table_name="users")

SCHEDULE: Final = frozenset({"send_every", "send_weekday", "send_hour"})


def _finish(report: SavedReport, given: Collection[str], now: datetime) -> SavedReport:
    """Note when a schedule was set: what was due before is not sent."""
    is_set = not SCHEDULE.isdisjoint(given)
    return msgspec.structs.replace(report, scheduled_at=now) if is_set else report


async def _check(write: CatalogWrite, _scope: Scope, before: SavedReport | None, after: SavedReport) -> None:
    if before is None and await write.connection.fetchval(COUNT_OF, after.owner_id) >= REPORTS_MAX:
        raise ConflictError(
            f"You have {REPORTS_MAX} saved reports already. Delete one first.", code="SAVED_REPORTS_MAX"
        )


saved_reports = Resource(
    struct=SavedReport,
    name="report",
    function_name="saved_report",
    noun="saved_report",
    path="/admin/saved-reports",
    tag="saved reports",
    table_name="saved_reports",
    title="name",
    references={"owner_id": owners},
    set_by_server=frozenset({"owner_id", "scheduled_at", "last_sent_at", "last_failure"}),
    finish=_finish,
    check=_check,
    taken=lambda report: make_taken_error(
        "name", f"You have a saved report called {report.name!r} already.", code="SAVED_REPORT_NAME_EXISTS"
    ),
)
