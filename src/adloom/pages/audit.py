"""Who gave or removed a page by hand, on the audit trail; what crawls and browsers find is not recorded."""

from typing import Final
from uuid import UUID

from adloom.catalog.site import Site
from adloom.core.caller import Role
from adloom.pages.model import PageCategory, SitePage
from adloom.resource.audit.entry import OWNED_NOUNS, AuditSubject, NewAuditEntry
from adloom.resource.changes import CatalogWrite

NOUN: Final = "page"
OWNED_NOUNS[Role.PUBLISHER].append(NOUN)


def record_given(  # noqa: PLR0913, PLR0917 - a page before and after
    write: CatalogWrite,
    site: Site,
    url: str,
    before: SitePage | None,
    page_id: UUID,
    categories: tuple[PageCategory, ...] | None,
) -> None:
    """Record that somebody gave a page with categories, or without them a text to classify."""
    if before is not None and before.categories == categories:
        return
    about = AuditSubject(NOUN, f"{site.id}/{before.id if before else page_id}", site.publisher_id)
    # Of a text it is recorded that it was sent: the trail is no backup.
    given = (
        {"text": {"from": None, "to": "sent to be classified"}}
        if categories is None
        else {"categories": {"from": _name(before.categories) if before else None, "to": _name(categories)}}
    )
    changes = {"url": {"from": before.url if before else None, "to": url}, **given}
    write.entries.append(NewAuditEntry(about, "update" if before else "create", changes))


def record_removed(write: CatalogWrite, site: Site, page: SitePage) -> None:
    changes = {
        "url": {"from": page.url, "to": None},
        "categories": {"from": _name(page.categories), "to": None},
    }
    about = AuditSubject(NOUN, f"{site.id}/{page.id}", site.publisher_id)
    write.entries.append(NewAuditEntry(about, "delete", changes))


def _name(categories: tuple[PageCategory, ...]) -> dict[str, float]:
    return {one.id: one.confidence for one in categories}
