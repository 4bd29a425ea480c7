"""Banners, declared."""

from adloom.catalog.advertiser.resource import advertisers
from adloom.catalog.banner.model import Banner
from adloom.catalog.reference.model import BannerSeoNotFoundError, ReferenceKind
from adloom.catalog.reference.resource import RECORDS, is_there
from adloom.core.errors import BannerNotFoundError, FieldProblem, ValidationFailedError
from adloom.resource.access import Scope
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.forms import Filter
from adloom.resource.resource import Resource
from adloom.resource.table import ADVERTISER
from adloom.runtime.http.api.shapes import Text100


async def _check_records(write: CatalogWrite, _scope: Scope, before: Banner | None, after: Banner) -> None:
    """Check that what a banner begins to name is there; it stays until the write ends."""
    missing: list[ReferenceKind] = []
    for kind in ReferenceKind:
        field = f"{kind}_id"
        key = getattr(after, field)
        is_new = before is None or getattr(before, field) != key
        if key is not None and is_new and not await is_there(write, kind, key):
            missing.append(kind)
    problems = [
        FieldProblem(f"{kind}Id", f"names no {kind}") for kind in missing if kind is not ReferenceKind.SEO
    ]
    if problems:
        raise ValidationFailedError("The banner names what is not there.", errors=problems)
    if missing:
        raise BannerSeoNotFoundError("There is no SEO record with this id.")


banners = Resource(
    struct=Banner,
    name="banner",
    path="/admin/banners",
    tag="banners",
    table_name="banners",
    not_found=BannerNotFoundError,
    owner=ADVERTISER,
    references={"advertiser_id": advertisers, **{f"{kind}_id": records for kind, records in RECORDS.items()}},
    touches=(IndexedNoun.BANNER, "id"),
    docs={"body": "A new banner. Without an advertiser it belongs to the house."},
    filters=(
        "is_active",
        "schedule_status",
        "source",
        "brand_id",
        "category_id",
        Filter(name="tag", annotation=Text100, condition="it.tags @> ARRAY[{}::text]"),
        "advertiser_id",
    ),
    search=("title", "headline", "description"),
    sort=("title", "priority", "source", "is_active", "schedule_status", "publish_at", "expires_at"),
    columns=("title", "is_active", "schedule_status", "priority", "created_at"),
    check=_check_records,
    finish=lambda banner, given, now: banner.scheduled(given, now),
    list_name="banners",
)
