"""Appending to the audit trail."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.resource.audit.entry import Author, NewAuditEntry
from adloom.runtime.postgres import Connection

# As much as one statement takes; a single write has one or two, an import a hundred thousand.
BATCH_MAX: Final = 5_000
INSERT = """
    INSERT INTO audit_entries
           (at, subject, role, account_id, request_id, network, noun, noun_id, owner_id, action, changes)
    SELECT $1, $2, $3, $4, $5, $11, noun, noun_id, owner_id, action, changes::jsonb
      FROM unnest($6::text[], $7::text[], $8::uuid[], $9::text[], $10::text[])
           WITH ORDINALITY AS entry (noun, noun_id, owner_id, action, changes, place)
     ORDER BY place
"""


async def append(
    connection: Connection, author: Author, entries: Sequence[NewAuditEntry], *, at: datetime
) -> None:
    """Append what one transaction did, in its order."""
    for batch in _split_in_batches(entries):
        await connection.execute(
            INSERT,
            at,
            author.subject,
            author.role,
            author.account_id,
            author.request_id,
            [entry.about.noun for entry in batch],
            [entry.about.noun_id for entry in batch],
            [entry.about.owner_id for entry in batch],
            [entry.action for entry in batch],
            [msgspec.json.encode(entry.changes).decode() for entry in batch],
            author.network,
        )


def _split_in_batches(entries: Sequence[NewAuditEntry]) -> list[Sequence[NewAuditEntry]]:
    return [entries[start : start + BATCH_MAX] for start in range(0, len(entries), BATCH_MAX)]
