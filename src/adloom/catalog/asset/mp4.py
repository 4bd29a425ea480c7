"""The size of an MP4 video, read from its boxes."""

# pure

import struct
from collections.abc import Iterator
from typing import Final

from adloom.catalog.asset.model import AssetRefusedError, check_size

HEADER: Final = 8
LONG_HEADER: Final = 16
BOXES_MAX: Final = 10_000
SIDES: Final = 8  # Bytes at the end of a track's header: width and height, each 16 bits and a fraction.

NO_VIDEO: Final = "The MP4 has no video that can be read. Export it again, as H.264 in MP4."


def read_video_size(data: bytes) -> tuple[int, int]:
    """Return the size of the first track with a picture; raises AssetRefusedError."""
    for movie in _iter_boxes(data, 0, len(data), b"moov"):
        for track in _iter_boxes(data, *movie, b"trak"):
            for first, last in _iter_boxes(data, *track, b"tkhd"):
                if last - first < SIDES:
                    continue
                width, height = struct.unpack_from(">II", data, last - SIDES)
                if width and height:
                    return check_size(width >> 16, height >> 16)
    raise AssetRefusedError(NO_VIDEO)


def _iter_boxes(data: bytes, first: int, last: int, wanted: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the content of boxes of a type begins and ends, within a range."""
    for _ in range(BOXES_MAX):
        if first + HEADER > last:
            return
        size, kind = struct.unpack_from(">I4s", data, first)
        header = HEADER
        if size == 1 and first + LONG_HEADER <= last:
            size, header = struct.unpack_from(">Q", data, first + HEADER)[0], LONG_HEADER
        elif size == 0:
            size = last - first
        if size < header or first + size > last:
            raise AssetRefusedError(NO_VIDEO)
        if kind == wanted:
            yield first + header, first + size
        first += size
