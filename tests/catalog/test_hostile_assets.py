"""Uploads that are damaged, or made to take long: shown, or refused with a sentence, with little work."""

import io
import random
import zipfile

import pytest

from adloom.catalog.asset.model import AssetRefusedError, AssetTooLargeError
from adloom.catalog.asset.prepare import prepare_asset
from adloom.catalog.asset.svg import ELEMENTS_MAX, sanitize_svg
from adloom.runtime.files.place import AssetSettings
from tests.catalog.asset_files import INDEX, SVG, a_box, a_video, a_zip, with_secrets
from tests.support.for_each import for_each

SETTINGS = AssetSettings(html_bytes_max=1_000_000)


def a_packed_zip(method: int, content: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("index.html", INDEX)
        archive.writestr("a.txt", content, method)
    return written.getvalue()


def test_a_creative_is_packed_as_zips_usually_are() -> None:
    # A few bytes of the other ways become all of their content at once, however little is asked for.
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(AssetRefusedError, match=r"a\.txt.*Deflate"):
            prepare_asset(a_packed_zip(method, b"1"), SETTINGS)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        assert len(prepare_asset(a_packed_zip(method, b"1"), SETTINGS).files) == 2


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"<META content='width = 30, height = 20' name = 'Ad.Size'>", (30, 20)),
        (b'<meta name="viewport" content="width=5,height=6"><meta\nname="ad.size"\ncontent="width=30,height=20"/>', (30, 20)),
        (b'<meta name="ad.size"><meta content="width=30,height=20">', (None, None)),
        (b" " * 70_000 + INDEX, (None, None)),
        (b"<meta name='ad.size'" * 500_000, (None, None)),
        (b"<meta name='ad.size' content='" * 300_000, (None, None)),
        (b"<meta " + b"name " * 2_000_000, (None, None)),
        (b"<meta" + b" " * 10_000_000, (None, None)),
    ],
    ids=range(8),
)  # fmt: skip
def test_the_size_of_a_creative_is_found_whatever_its_page_is(
    head: bytes, size: tuple[int | None, int | None]
) -> None:
    asset = prepare_asset(a_zip({"index.html": head}), AssetSettings())

    assert (asset.width, asset.height) == size


def test_a_file_and_a_folder_of_one_name_are_refused() -> None:
    for names in (["a.js", "a.js/b.js"], ["A.js/b.js", "a.js"]):
        with pytest.raises(AssetRefusedError, match=r"a\.js"):
            prepare_asset(a_zip({"index.html": INDEX, **dict.fromkeys(names, b"1")}), SETTINGS)


def test_long_names_of_what_is_left_out_take_little_work() -> None:
    names = ["/__MACOSX/" * 6_000 + f"\n{number}" for number in range(50)]

    assert (
        len(prepare_asset(a_zip({"index.html": INDEX, **dict.fromkeys(names, b"1")}), AssetSettings()).files)
        == 1
    )


def test_a_drawing_of_an_encoding_that_cannot_be_read_is_refused() -> None:
    for encoding in (b"foo", b"gb2312", b"utf-7", b"idna", b"zlib", b"utf-16"):
        with pytest.raises(AssetRefusedError, match="SVG cannot be read"):
            prepare_asset(b'<?xml version="1.0" encoding="%b"?>%b' % (encoding, SVG), SETTINGS)


def test_a_picture_that_is_none_is_refused_without_names_of_our_code() -> None:
    with pytest.raises(AssetRefusedError, match=r"^The picture cannot be read\. Save it again\.$"):
        prepare_asset(b"\x89PNG\r\n\x1a\n", SETTINGS)


def test_a_style_in_many_pieces_is_read_as_one() -> None:
    piece = b".a{}<b/>"

    clean, _ = sanitize_svg(b"<svg><style>" + piece * (ELEMENTS_MAX - 2) + b"</style></svg>")

    assert clean.count(b"{}") == ELEMENTS_MAX - 2


def test_a_video_of_very_many_tracks_is_refused() -> None:
    movie = a_box(b"moov", a_box(b"trak", b"") * 1_000)

    with pytest.raises(AssetRefusedError):
        prepare_asset(a_box(b"ftyp", b"isom0000") + movie * 11, AssetSettings())


WHOLE = {
    "svg": b'<?xml version="1.0" encoding="utf-8"?>' + SVG,
    "mp4": a_video().replace(a_box(b"mdat", bytes(5_000)), b""),
    "zip": a_zip({"index.html": INDEX + bytes(range(256)), "a/b.js": b"x = 1;" * 50}),
    **{kind: with_secrets(kind, 6, 900) for kind in ("JPEG", "PNG", "WEBP", "GIF")},
}


def damage(data: bytes, chance: random.Random) -> bytes:
    """Change, take out or add a few bytes, more often near the beginning, where the structure is."""
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        place = chance.randrange(len(damaged) if chance.random() < 0.4 else min(len(damaged), 300))
        match chance.choice(("change", "change", "change", "take", "add")):
            case "change":
                damaged[place] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
            case "take":
                del damaged[place : place + chance.randrange(1, 9)]
            case _:
                damaged[place:place] = chance.randbytes(chance.randrange(1, 6))
    return bytes(damaged)


@for_each("kind", WHOLE)
def test_a_damaged_file_is_shown_or_refused_with_a_sentence(kind: str) -> None:
    chance = random.Random(7)  # noqa: S311 - the same files every time
    refused = 0
    for _ in range(300):
        try:
            prepare_asset(damage(WHOLE[kind], chance), SETTINGS)
        except (AssetRefusedError, AssetTooLargeError):
            refused += 1

    assert 0 < refused < 300
