"""The boxes of an MP4 video: its size is read from them, and what is not seen is blanked."""

# pure

import itertools
import struct
from collections.abc import Iterator
from typing import Final

from adloom.catalog.asset.model import AssetRefusedError, check_size

HEADER: Final = 8
LONG_HEADER: Final = 16
BOXES_MAX: Final = 10_000
TRACKS_MAX: Final = 1_000  # A video has two or three.
SIDES: Final = 8  # Bytes at the end of a track's header: width and height, each 16 bits and a fraction.

METADATA: Final = (b"udta", b"meta", b"uuid")

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


def blank_metadata(data: bytes) -> bytes:
    """Blank the boxes with place and maker of a video; all others stay where they are."""
    blanked = bytearray(data)
    ranges = [(0, len(data))]
    ranges += (movies := [*_iter_boxes(data, 0, len(data), b"moov")])
    tracks = (track for movie in movies for track in _iter_boxes(data, *movie, b"trak"))
    ranges += itertools.islice(tracks, TRACKS_MAX + 1)
    if len(ranges) > TRACKS_MAX:
        raise AssetRefusedError(NO_VIDEO)
    for place in ranges:
        for kind in METADATA:
            for first, last in _iter_boxes(data, *place, kind, whole=True):
                blanked[first + 4 : first + HEADER] = b"free"
                content = first + (LONG_HEADER if data[first : first + 4] == b"\0\0\0\1" else HEADER)
                blanked[content:last] = bytes(last - content)
    return bytes(blanked)


def _iter_boxes(
    data: bytes, first: int, last: int, wanted: bytes, *, whole: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield where boxes of a type, or their contents, begin and end, within a range."""
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
            yield first if whole else first + header, first + size
        first += size
