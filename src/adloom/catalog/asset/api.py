"""Assets over HTTP: upload, list, read, remove. The bytes are served by delivery, never here."""

from datetime import datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

import msgspec
from fastapi import Query, Request, Response, status
from pydantic import Field

from adloom.catalog.asset import store
from adloom.catalog.asset.model import Asset, AssetKind, AssetNotFoundError, AssetRefusedError
from adloom.catalog.asset.upload import AssetUploads
from adloom.core.public_paths import FILES, name_neutrally
from adloom.resource.access import choose_owner
from adloom.resource.api import AdvertiserReads, AdvertiserWrites, CurrentCatalog, make_catalog_router
from adloom.runtime.http.api.dependencies import Now, depend_on
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, Name, Text255
from adloom.runtime.listing import Listed

UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "description": "The bytes of the file, as they are. What they are is read off them.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class AssetAnswer(Answer):
    """An uploaded file. `url` is its address for banners: it never changes, and neither does what is there."""

    id: UUID
    advertiser_id: UUID | None
    name: str
    kind: Annotated[
        AssetKind, Field(description="`html` is an HTML5 creative: the variant `html` of a banner.")
    ]
    mime: str
    size: Annotated[int, Field(description="In bytes, with smaller versions.")]
    width: int | None
    height: int | None
    sha256: str
    url: str
    variants: Annotated[
        dict[str, str],
        Field(description="Smaller versions by size of screen, as in `mediaVariants` of a banner."),
    ]
    created_at: datetime


class UploadQuery(Body):
    """What a file is called, and whose it becomes."""

    name: Annotated[Name, Field(description="For people.")] = "Unnamed"
    advertiser_id: UUID | None = None


class AssetQuery(ListQuery):
    """How a list of assets is narrowed, sorted and paged."""

    SORTABLE: ClassVar = frozenset({"created_at", "name", "size"})

    kind: AssetKind | None = None
    search: Text255 | None = None


Uploads = Annotated[AssetUploads, depend_on("asset_uploads")]
router = make_catalog_router("/admin/assets", tag="assets")


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    responses={200: {"model": AssetAnswer, "description": "The file is there already."}},
    openapi_extra=UPLOAD_BODY,
)
async def upload_asset(  # noqa: PLR0913, PLR0917 - a file, whose it is, and who brings it when
    request: Request,
    response: Response,
    query: Annotated[UploadQuery, Query()],
    scope: AdvertiserWrites,
    catalog: CurrentCatalog,
    uploads: Uploads,
    now: Now,
) -> AssetAnswer:
    """Upload a picture, a video or an HTML5 creative; the same file again is answered 200 with what is there."""
    owner_id = choose_owner(scope, query.advertiser_id, field="advertiserId")
    async with uploads.turns.take(scope.account_id):
        data = await request.body()
        if not data:
            raise AssetRefusedError("The body is empty. Send the bytes of a file.")
        asset, is_new = await uploads.take_in(catalog, owner_id, query.name, data, now)
    if not is_new:
        response.status_code = status.HTTP_200_OK
    return _show(request, asset)


@router.get("")
async def list_assets(
    request: Request, query: Annotated[AssetQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> Page[AssetAnswer]:
    """List uploaded files, the newest first."""
    async with catalog.read() as connection:
        listed = await store.list_assets(
            connection, scope, query.page_request, kind=query.kind, search=query.search
        )
    shown = Listed(items=[_show(request, one) for one in listed.items], total_count=listed.total_count)
    return build_page(AssetAnswer, shown, query)


@router.get("/{asset_id}")
async def read_asset(
    request: Request, asset_id: UUID, scope: AdvertiserReads, catalog: CurrentCatalog
) -> AssetAnswer:
    """Return what is known of a file."""
    async with catalog.read() as connection:
        asset = await store.find(connection, scope, asset_id)
    if asset is None:
        raise AssetNotFoundError("There is no asset with this id.")
    return _show(request, asset)


@router.delete("/{asset_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_asset(
    asset_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog, uploads: Uploads
) -> None:
    """Remove a file that nothing shows any more."""
    await uploads.remove(catalog, scope, asset_id)


def _show(request: Request, asset: Asset) -> AssetAnswer:
    state: Any = request.app.state
    origin: str = state.delivery_url

    def build_url(key: str) -> str:
        return f"{origin}{name_neutrally(FILES + key.partition('/')[2], state.public_prefix)}"

    variants = {screen: build_url(key) for screen, key in asset.variants.items()}
    shown = msgspec.structs.replace(asset, variants=variants)
    return AssetAnswer(url=build_url(asset.keys[0]), **msgspec.structs.asdict(shown))
