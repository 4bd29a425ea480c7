"""Pictures of pixels: checked by decoding them, and smaller versions of them.

The library that decodes is loaded by the first upload, and only by the control plane.
"""

import io
import warnings
from typing import TYPE_CHECKING, Final, NamedTuple

from adloom.catalog.asset.metadata import ORIENTATION, UPRIGHT, strip_metadata
from adloom.catalog.asset.model import GIF, JPEG, PNG, WEBP, AssetRefusedError, AssetType, check_size
from adloom.core.errors import AdloomError

if TYPE_CHECKING:
    from PIL import Image

FORMATS: Final = {JPEG: "JPEG", PNG: "PNG", WEBP: "WEBP", GIF: "GIF"}
FRAMES_MAX: Final = 500
# The widths of the tag's breakpoints: a screen with fewer pixels gets the smaller version.
WIDTHS: Final = {"mobile": 640, "tablet": 1_280}
WORTH_IT: Final = 1.25  # A version is made of a picture that is so many times as wide.
QUALITY: Final = 82


class PreparedPicture(NamedTuple):
    """A picture that was decoded: its size as people see it, without metadata, and smaller versions."""

    size: tuple[int, int]
    data: bytes
    versions: dict[str, bytes]  # As WebP, by size of screen.


def read_picture(data: bytes, kind: AssetType) -> PreparedPicture:
    """Decode a picture, and return what is stored of it. Raises AssetRefusedError.

    The size is checked before anything is decoded.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError  # noqa: PLC0415 - see above

    Image.MAX_IMAGE_PIXELS = None  # We check ourselves, and refuse.
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            Image.open(io.BytesIO(data), formats=[FORMATS[kind]]) as picture,
        ):
            check_size(*picture.size)
            frames = _check_frames(getattr(picture, "n_frames", 1))
            picture.load()
            upright = ImageOps.exif_transpose(picture)
            stripped = strip_metadata(data, kind, picture.getexif().get(ORIENTATION, UPRIGHT))
            versions = {} if frames > 1 else _make_versions(upright, len(stripped))
            return PreparedPicture(upright.size, stripped, versions)
    except AdloomError:
        raise
    except UnidentifiedImageError as error:  # It names an object of ours, and nothing of the file.
        raise AssetRefusedError("The picture cannot be read. Save it again.") from error
    except (
        OSError,
        SyntaxError,
        ValueError,
        EOFError,
        IndexError,
        KeyError,
    ) as error:
        raise AssetRefusedError(f"The picture cannot be read: {error}. Save it again.") from error
    except Exception as error:  # Damaged metadata fails in more ways than the library names.
        raise AssetRefusedError("The picture cannot be read. Save it again.") from error


def _check_frames(frames: int) -> int:
    if frames > FRAMES_MAX:
        raise AssetRefusedError(f"The picture has {frames} frames; it may have {FRAMES_MAX}.")
    return frames


def _make_versions(picture: "Image.Image", size: int) -> dict[str, bytes]:
    versions: dict[str, bytes] = {}
    for screen, width in WIDTHS.items():
        if picture.width < width * WORTH_IT:
            continue
        height = max(1, round(picture.height * width / picture.width))
        small = picture.convert("RGBA" if picture.has_transparency_data else "RGB").resize((width, height))
        written = io.BytesIO()
        # Without what the camera wrote: the library would copy some of it.
        small.save(written, "WEBP", quality=QUALITY, method=4, exif=b"", xmp=b"")
        if written.tell() < size:
            versions[screen] = written.getvalue()
    return versions
