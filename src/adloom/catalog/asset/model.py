"""What an uploaded file is, and why one is refused."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, NewType
from uuid import UUID

import msgspec

from adloom.core.errors import BadRequestError, BodyTooLargeError, ConflictError, NotFoundError
from adloom.core.ids import AdvertiserId

AssetId = NewType("AssetId", UUID)

SIDE_MAX: Final = 10_000  # Pixels.
PIXELS_MAX: Final = 25_000_000  # Decoded they take four bytes each.


class AssetKind(StrEnum):
    """What an asset is shown as."""

    IMAGE = "image"
    VIDEO = "video"
    HTML = "html"


class AssetType(msgspec.Struct, frozen=True):
    """A type of file: what it is shown as, its media type, and how our files of it end."""

    kind: AssetKind
    mime: str
    extension: str


JPEG: Final = AssetType(AssetKind.IMAGE, "image/jpeg", "jpg")
PNG: Final = AssetType(AssetKind.IMAGE, "image/png", "png")
WEBP: Final = AssetType(AssetKind.IMAGE, "image/webp", "webp")
GIF: Final = AssetType(AssetKind.IMAGE, "image/gif", "gif")
SVG: Final = AssetType(AssetKind.IMAGE, "image/svg+xml", "svg")
MP4: Final = AssetType(AssetKind.VIDEO, "video/mp4", "mp4")
HTML5: Final = AssetType(AssetKind.HTML, "application/zip", "zip")


class AssetFile(msgspec.Struct, frozen=True, gc=False):
    """A file to be stored: its name below the store, its bytes and its media type."""

    key: str
    data: bytes
    mime: str


class PreparedAsset(msgspec.Struct, frozen=True, kw_only=True):
    """An upload that was looked at: what it is, and the files that it becomes, the one that is shown first."""

    sha256: str
    kind: AssetKind
    mime: str
    width: int | None
    height: int | None
    files: tuple[AssetFile, ...]
    variants: Mapping[str, str] = {}  # By size of screen, the key of a smaller version.

    @property
    def size(self) -> int:
        return sum(len(one.data) for one in self.files)


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """An uploaded file of an account, or of the house."""

    id: AssetId
    advertiser_id: AdvertiserId | None
    name: str
    kind: AssetKind
    mime: str
    size: int
    width: int | None
    height: int | None
    sha256: str
    keys: tuple[str, ...]
    variants: dict[str, str]
    created_at: datetime


class AssetRefusedError(BadRequestError):
    """The file is not one that can be shown; the message says what to change."""

    code = "ASSET_REFUSED"


class AssetTooLargeError(BodyTooLargeError):
    """The file is larger than its kind may be."""

    code = "ASSET_TOO_LARGE"


class AssetNotFoundError(NotFoundError):
    """No such asset, or it belongs to another account."""

    code = "ASSET_NOT_FOUND"


class AssetInUseError(ConflictError):
    """A banner or a placement shows it."""

    code = "ASSET_IN_USE"


def check_size(width: int, height: int) -> tuple[int, int]:
    """Return a size that a page can show, or raise."""
    if not (0 < width <= SIDE_MAX and 0 < height <= SIDE_MAX) or width * height > PIXELS_MAX:
        raise AssetRefusedError(
            f"The file says that it is {width} x {height}. It may have at most {SIDE_MAX:,} pixels a side "
            f"and {PIXELS_MAX:,} in all."
        )
    return width, height
