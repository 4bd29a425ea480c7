"""The audit trail as it is read."""

from collections.abc import Iterable
from datetime import datetime
from itertools import chain
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from pydantic import Field

from adloom.core.caller import Caller
from adloom.resource.audit.entry import OWNED_NOUNS
from adloom.resource.names import list_ids, read_names
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection

# Of people who were removed, the entry of that has the address. Accounts know who acts for the same account only.
NAMES = """
    SELECT public_id AS id, email AS name FROM users
     WHERE public_id = ANY ($1::uuid[]) AND ($2 OR role = $3 AND account_id = $4)
     UNION ALL
    SELECT public_id, name FROM api_keys
     WHERE public_id = ANY ($1::uuid[]) AND ($2 OR role = $3 AND account_id = $4)
     UNION ALL
    SELECT noun_id::uuid, changes #>> '{email,from}' FROM audit_entries
     WHERE noun = 'user' AND action = 'delete' AND noun_id = ANY ($1::uuid[]::text[])
       AND ($2 OR changes #>> '{role,from}' = $3 AND changes #>> '{accountId,from}' = $4::uuid::text)
"""


def find_subject_id(subject: str) -> UUID | None:
    """Return the id in a subject, which a key has after its kind: `key:01a1…`."""
    return next(iter(list_ids(subject.rpartition(":")[2])), None)


async def read_people(connection: Connection, caller: Caller, ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """Return what people and keys are called, as far as this caller may know them."""
    wanted = sorted({one for one in ids if one is not None})
    if not wanted:
        return {}
    rows = await connection.fetch(NAMES, wanted, caller.sees_all, caller.role.value, caller.account_id)
    return {row["id"]: row["name"] for row in rows if row["name"] is not None}


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what to which thing, when, and what it changed."""

    at: datetime
    subject: str
    subject_name: Annotated[
        str | None,
        Field(description="The e-mail address of a person or the name of an API key, where you may know it."),
    ] = None
    role: str
    account_id: UUID | None
    request_id: str | None
    network: str | None
    noun: str
    noun_id: str
    owner_id: UUID | None
    action: str
    changes: dict[str, Any]
    names: dict[str, str] = {}  # Of the ids that it has, as far as they have names.


READ_LATER: Final = frozenset({"names", "subject_name"})
ENTRIES = RowSource(
    columns=", ".join(f"it.{name}" for name in AuditEntry.__struct_fields__ if name not in READ_LATER),
    tables="audit_entries AS it",
    tiebreak="it.id",
)
# Names of links, assignments and creatives begin with their campaign; a rule names it when it is made.
OF_A_CAMPAIGN: Final = """
    (it.noun = 'campaign' AND it.noun_id = {}
     OR it.noun IN ('link', 'assignment', 'creative') AND starts_with(it.noun_id, {})
     OR it.noun = 'targeting_rule' AND it.noun_id IN (
        SELECT made.noun_id FROM audit_entries AS made
         WHERE made.noun = 'targeting_rule' AND made.action = 'create'
           AND made.changes #>> '{{campaignId,to}}' = {}))
"""
# Pages that were given or removed by hand, and decisions about banners, have the site at the beginning of their names.
OF_A_SITE: Final = """
    (it.noun = 'site' AND it.noun_id = {} OR it.noun IN ('page', 'approval') AND starts_with(it.noun_id, {}))
"""
# Rows of an advertiser that a publisher decides about.
DECIDED_NOUNS: Final = ("link", "assignment")
OF_AN_ACCOUNT: Final = """
    (it.owner_id = {} AND it.noun = ANY ({}::text[])
     OR it.account_id = {} AND it.role = {} AND it.noun = ANY ({}::text[]))
"""

# Of people, also of those who were removed.
BY_ADDRESS: Final = """
    it.subject IN (
        SELECT public_id::text FROM users WHERE lower(email) = lower({})
         UNION
        SELECT noun_id FROM audit_entries
         WHERE noun = 'user' AND action = 'delete' AND lower(changes #>> '{{email,from}}') = lower({}))
"""


def build_filters(  # noqa: PLR0913 - what an entry may be looked for by
    caller: Caller,
    *,
    noun: str | None,
    noun_id: str | None,
    subject: str | None,
    since: datetime | None,
    before: datetime | None,
    campaign_id: UUID | None = None,
    site_id: UUID | None = None,
) -> Filters:
    """Filter the trail; an account finds the entries about its own rows, whoever wrote them, and its own decisions."""
    filters = Filters()
    if not caller.sees_all:
        filters.add(
            OF_AN_ACCOUNT,
            caller.account_id,
            OWNED_NOUNS[caller.role],
            # One id may be an advertiser's and a publisher's: what it did as the other is not shown.
            caller.account_id,
            caller.role.value,
            list(DECIDED_NOUNS),
        )
    filters.add_given("it.noun = {}", noun)
    filters.add_given("it.noun_id = {}", noun_id)
    if subject is not None and caller.sees_all and "@" in subject:
        filters.add(BY_ADDRESS, subject, subject)
    else:
        filters.add_given("it.subject = {}", subject)
    filters.add_given("it.at >= {}", since)
    filters.add_given("it.at < {}", before)
    if campaign_id is not None:
        filters.add(OF_A_CAMPAIGN, str(campaign_id), f"{campaign_id}/", str(campaign_id))
    if site_id is not None:
        filters.add(OF_A_SITE, str(site_id), f"{site_id}/")
    return filters


async def read_page(
    connection: Connection, caller: Caller, filters: Filters, request: PageRequest
) -> Listed[AuditEntry]:
    """Read entries with the names of what they mention: who may read an entry knows these things."""
    listed = await fetch_structs(connection, ENTRIES, filters, request, AuditEntry)
    mentioned = [list_ids([one.noun_id, one.owner_id, one.account_id, one.changes]) for one in listed.items]
    authors = [find_subject_id(one.subject) for one in listed.items]
    people = await read_people(connection, caller, chain(authors, *mentioned))
    names = await read_names(connection, chain.from_iterable(mentioned)) | people
    return Listed(
        items=[
            msgspec.structs.replace(
                entry,
                names={str(one): names[one] for one in ids if one in names},
                subject_name=None if author is None else people.get(author),
            )
            for entry, ids, author in zip(listed.items, mentioned, authors, strict=True)
        ],
        total_count=listed.total_count,
    )


def hide_networks(listed: Listed[AuditEntry]) -> Listed[AuditEntry]:
    """Leave out where people work: an account reads what admins did to its rows."""
    items = [msgspec.structs.replace(entry, network=None) for entry in listed.items]
    return Listed(items=items, total_count=listed.total_count)
