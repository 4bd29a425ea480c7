"""Who wrote the entries of the audit trail: e-mail addresses of people, and names of API keys."""

from collections.abc import Iterable
from uuid import UUID

from adloom.core.actor import Actor
from adloom.resource.names import list_ids
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


async def read_people(connection: Connection, actor: Actor, ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """Return what people and keys are called, as far as this actor may know them."""
    wanted = sorted({one for one in ids if one is not None})
    if not wanted:
        return {}
    rows = await connection.fetch(NAMES, wanted, actor.sees_all, actor.role.value, actor.account_id)
    return {row["id"]: row["name"] for row in rows if row["name"] is not None}
