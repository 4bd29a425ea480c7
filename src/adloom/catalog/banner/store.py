"""SQL of banners."""

from uuid import UUID

from adloom.catalog.banner.model import Banner
from adloom.catalog.reference.model import BannerSeoNotFoundError, ReferenceId, ReferenceKind
from adloom.catalog.reference.store import is_there
from adloom.catalog.source import Source
from adloom.core.actor import Role
from adloom.core.errors import BannerNotFoundError, FieldProblem, ValidationFailedError
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.owned_table import OwnedTable
from adloom.runtime.listing import Filters
from adloom.schedule.schedule import ScheduleStatus

SORTABLE = frozenset(
    {
        "created_at",
        "updated_at",
        "title",
        "priority",
        "source",
        "is_active",
        "schedule_status",
        "publish_at",
        "expires_at",
    }
)

banners = OwnedTable(
    Banner, table="banners", noun=IndexedNoun.BANNER, owner=Role.ADVERTISER, not_found=BannerNotFoundError
)


def matching(  # noqa: PLR0913 - an argument a filter, each by its name
    *,
    is_active: bool | None,
    source: Source | None,
    schedule_status: ScheduleStatus | None,
    brand_id: int | None,
    category_id: int | None,
    tag: str | None,
    search: str | None,
    includes_deleted: bool,
    advertiser_id: UUID | None = None,
) -> Filters:
    """Filter a list of banners."""
    filters = Filters()
    filters.add_given("it.is_active = {}", is_active)
    filters.add_given("it.source = {}", source)
    filters.add_given("owner.public_id = {}", advertiser_id)
    filters.add_given("it.schedule_status = {}", schedule_status)
    filters.add_given("it.brand_id = {}", brand_id)
    filters.add_given("it.category_id = {}", category_id)
    filters.add_given("it.tags @> ARRAY[{}::text]", tag)
    filters.add_search(("it.title", "it.headline", "it.description"), search)
    if not includes_deleted:
        filters.add("it.deleted_at IS NULL")
    return filters


async def insert(write: CatalogWrite, banner: Banner) -> None:
    """Add a banner; what it names must be there."""
    await _check_references(write, _references(banner))
    await banners.insert(write, banner)


async def update(write: CatalogWrite, before: Banner, after: Banner) -> Banner:
    """Write a banner that was read with a lock before, and give it as it is now."""
    named = _references(before)
    await _check_references(
        write, {kind: key for kind, key in _references(after).items() if key != named.get(kind)}
    )
    return await banners.update(write, before, after)


def _references(banner: Banner) -> dict[ReferenceKind, ReferenceId]:
    ids = {
        ReferenceKind.BRAND: banner.brand_id,
        ReferenceKind.CATEGORY: banner.category_id,
        ReferenceKind.PRODUCT: banner.product_id,
        ReferenceKind.SEO: banner.seo_id,
    }
    return {kind: key for kind, key in ids.items() if key is not None}


async def _check_references(write: CatalogWrite, named: dict[ReferenceKind, ReferenceId]) -> None:
    missing = [kind for kind, key in named.items() if not await is_there(write, kind, key)]
    problems = [
        FieldProblem(f"{kind}Id", f"names no {kind}") for kind in missing if kind is not ReferenceKind.SEO
    ]
    if problems:
        raise ValidationFailedError("The banner names what is not there.", errors=problems)
    if missing:
        raise BannerSeoNotFoundError("There is no SEO record with this id.")
