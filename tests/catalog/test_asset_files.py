"""What an uploaded file is, by its bytes; and everything that is refused."""

import contextlib
import io
import stat
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from adloom.catalog.asset.html5 import FILES_MAX
from adloom.catalog.asset.model import AssetKind, AssetRefusedError, AssetTooLargeError
from adloom.catalog.asset.prepare import prepare_asset
from adloom.catalog.asset.svg import ELEMENTS_MAX, sanitize_svg
from adloom.runtime.files.place import AssetSettings
from tests.catalog.asset_files import INDEX, SECRET, SVG, a_box, a_picture, a_video, a_zip, with_secrets
from tests.support.for_each import for_each

SETTINGS = AssetSettings(html_bytes_max=1_000_000, video_bytes_max=100_000)


@pytest.mark.parametrize(
    ("data", "kind", "mime", "size"),
    [
        (a_picture("JPEG"), "image", "image/jpeg", (40, 30)),
        (a_picture("PNG"), "image", "image/png", (40, 30)),
        (a_picture("WEBP"), "image", "image/webp", (40, 30)),
        (a_picture("GIF"), "image", "image/gif", (40, 30)),
        (SVG, "image", "image/svg+xml", (30, 20)),
        (a_video(), "video", "video/mp4", (640, 360)),
        (a_zip(), "html", "application/zip", (300, 250)),
    ],
    ids=["jpeg", "png", "webp", "gif", "svg", "mp4", "html5"],
)
def test_type_and_size_are_read_off_the_bytes(
    data: bytes, kind: str, mime: str, size: tuple[int, int]
) -> None:
    asset = prepare_asset(data, SETTINGS)

    assert (asset.kind, asset.mime, (asset.width, asset.height)) == (AssetKind(kind), mime, size)
    assert asset.files[0].key.startswith(f"{asset.sha256[:2]}/{asset.sha256}")
    assert prepare_asset(data, SETTINGS) == asset


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GIF8",
        b"<html><script>alert(1)</script></html>",
        b"#!/bin/sh\n",
        b"BM" + bytes(100),
        b"\x89PNG\r\n\x1a\n" + bytes(20),
        a_picture("JPEG")[:200],
        a_picture("PNG", is_noisy=True)[:-500],
        b"\xff\xd8\xff" + bytes(200),
        b"PK\x03\x04" + bytes(100),
        b"<svg",
        b"<a><svg/></a>",
        a_box(b"ftyp", b"isom0000"),
        a_box(b"ftyp", b"isom0000") + b"\x00\x00\x00\x02moov",
    ],
    ids=range(14),
)
def test_what_cannot_be_shown_is_refused(data: bytes) -> None:
    with pytest.raises(AssetRefusedError):
        prepare_asset(data, SETTINGS)


@given(
    st.binary(max_size=300),
    st.sampled_from(
        [
            b"",
            b"\xff\xd8\xff",
            b"\x89PNG\r\n\x1a\n",
            b"GIF89a",
            b"PK\x03\x04",
            b"RIFF0000WEBP",
            b"0000ftyp",
            b"<svg ",
        ]
    ),
)
def test_whatever_is_sent_is_refused_with_a_sentence(noise: bytes, beginning: bytes) -> None:
    with contextlib.suppress(AssetRefusedError, AssetTooLargeError):
        prepare_asset(beginning + noise, SETTINGS)


def test_a_picture_that_would_fill_the_memory_is_refused_before_it_is_decoded() -> None:
    written = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(written, "PNG")  # 50 KB that become 400 million pixels.

    with pytest.raises(AssetRefusedError, match="20000 x 20000"):
        prepare_asset(written.getvalue(), SETTINGS)


def test_a_file_larger_than_its_kind_may_be_is_refused() -> None:
    with pytest.raises(AssetTooLargeError, match="100,000"):
        prepare_asset(a_video() + a_box(b"free", bytes(100_000)), SETTINGS)


def test_smaller_versions_are_made_of_a_large_picture() -> None:
    asset = prepare_asset(a_picture("JPEG", 2_000, 500, is_noisy=True), SETTINGS)

    sizes = {
        screen: Image.open(io.BytesIO(next(f.data for f in asset.files if f.key == key))).size
        for screen, key in asset.variants.items()
    }
    assert sizes == {"mobile": (640, 160), "tablet": (1280, 320)}
    assert len(asset.files) == 3
    assert prepare_asset(a_picture("JPEG", 700, 300), SETTINGS).variants == {}


def test_a_picture_is_measured_as_people_see_it() -> None:
    written = io.BytesIO()
    turned = Image.Exif()
    turned[0x0112] = 6  # A quarter turn.
    Image.new("RGB", (40, 30)).save(written, "JPEG", exif=turned)

    asset = prepare_asset(written.getvalue(), SETTINGS)

    assert (asset.width, asset.height) == (30, 40)


@for_each("kind", ["JPEG", "PNG", "WEBP", "GIF"])
@for_each("orientation", [1, 6])
def test_a_picture_is_stored_without_what_nobody_sees_and_looks_the_same(kind: str, orientation: int) -> None:
    data = with_secrets(kind, orientation)

    [file] = prepare_asset(data, SETTINGS).files

    before, after = (Image.open(io.BytesIO(one)) for one in (data, file.data))
    assert SECRET in data
    assert SECRET not in file.data
    assert dict(after.getexif()) == ({0x0112: 6} if orientation == 6 and kind != "GIF" else {})
    assert ImageOps.exif_transpose(after).tobytes() == ImageOps.exif_transpose(before).tobytes()
    assert after.info.get("icc_profile") == before.info.get("icc_profile")
    assert prepare_asset(file.data, SETTINGS).files == (file,)


def test_smaller_versions_and_videos_have_no_secrets_either_and_movements_stay() -> None:
    asset = prepare_asset(with_secrets("JPEG", 3, 2_000, is_noisy=True), SETTINGS)
    frames = [Image.new("RGB", (20, 20), (shade, 0, 0)) for shade in (10, 90, 200)]
    moving: list[tuple[int, int]] = []
    for kind in ("GIF", "WEBP", "PNG"):
        written = io.BytesIO()
        frames[0].save(written, kind, save_all=True, append_images=frames[1:], duration=70, loop=3)
        stored_one = Image.open(io.BytesIO(prepare_asset(written.getvalue(), SETTINGS).files[0].data))
        moving.append((getattr(stored_one, "n_frames", 0), stored_one.info["loop"]))
    place = a_box(b"udta", a_box(b"\xa9xyz", SECRET))
    video = a_video() + a_box(b"moov", place + a_box(b"trak", place)) + a_box(b"uuid", SECRET)
    [stored] = prepare_asset(video, SETTINGS).files

    assert len(asset.files) == 3
    assert not any(SECRET in file.data or b"Exif" in file.data for file in asset.files[1:])
    assert moving == [(3, 3)] * 3
    assert SECRET in video
    assert SECRET not in stored.data
    assert len(stored.data) == len(video)
    assert stored.data.startswith(a_video())


# Drawings.


@pytest.mark.parametrize(
    "harmful",
    [
        "<script>alert(1)</script>",
        '<rect onclick="alert(1)" width="1"/>',
        '<a href="javascript:alert(1)"><text>x</text></a>',
        '<image href="https://tracker.example/x.png"/>',
        '<use href="https://elsewhere.example/#a"/>',
        '<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></body></foreignObject>',
        "<style>@import url(https://elsewhere.example/a.css);</style>",
        '<style>@im<!-- x -->port "https://elsewhere.example/a.css";</style>',
        '<rect style="fill: url(https://elsewhere.example/#a)"/>',
        '<rect fill="url(//elsewhere.example/a)"/>',
        '<animate attributeName="href" to="javascript:alert(1)"/>',
        '<set attributeName="onload" to="alert(1)"/>',
        '<x:script xmlns:x="http://www.w3.org/2000/svg">alert(1)</x:script>',
        '<image href="data:text/html;base64,PHNjcmlwdD4="/>',
        '<?xml-stylesheet href="https://elsewhere.example/a.css"?>',
    ],
    ids=range(15),
)  # fmt: skip
def test_a_drawing_loses_what_acts_or_loads(harmful: str) -> None:
    drawing = f'<svg xmlns="http://www.w3.org/2000/svg" width="3" height="2">{harmful}<circle r="1"/></svg>'

    clean, size = sanitize_svg(drawing.encode())

    assert size == (3, 2)
    assert b'<circle r="1">' in clean
    for word in (b"alert", b"script", b"example", b"onclick", b"onload", b"@import", b"text/html"):
        assert word not in clean, clean
    assert sanitize_svg(clean) == (clean, size)


def test_a_drawing_keeps_what_is_drawn() -> None:
    drawing = (
        b'<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/a.dtd">'
        b'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 120 60">'
        b'<defs><linearGradient id="a"><stop offset="1" stop-color="#f80"/></linearGradient></defs>'
        b'<rect fill="url(#a)" width="9" class="b"/><style>.b { stroke: red }</style><use xlink:href="#a"/>'
        b'<text x="1">A &amp; B</text><image href="data:image/png;base64,AAAA"/></svg>'
    )

    clean, size = sanitize_svg(drawing)

    assert size == (120, 60)
    for part in (
        b'fill="url(#a)"',
        b".b { stroke: red }",
        b'xlink:href="#a"',
        b"A &amp; B",
        b"data:image/png",
    ):
        assert part in clean


@pytest.mark.parametrize(
    "drawing",
    [
        b'<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><svg xmlns="http://www.w3.org/2000/svg">&b;</svg>',
        b'<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
        b"<svg>" + b"<g>" * 200 + b"</g>" * 200 + b"</svg>",
        b"<svg>" + b"<g/>" * (ELEMENTS_MAX + 1) + b"</svg>",
        b'<svg width="99999" height="99999"/>',
    ],
    ids=["entities", "external", "deep", "many", "huge"],
)
def test_a_drawing_that_is_a_bomb_is_refused(drawing: bytes) -> None:
    with pytest.raises(AssetRefusedError):
        sanitize_svg(drawing)


# HTML5 creatives.


def test_a_creative_is_unpacked_without_the_folder_around_it() -> None:
    asset = prepare_asset(
        a_zip({"ad/js/a.js": b"1", "ad/index.html": INDEX, "__MACOSX/x": b"", "ad/.DS_Store": b""}), SETTINGS
    )

    assert [one.key.partition(f"{asset.sha256}/")[2] for one in asset.files] == ["index.html", "js/a.js"]
    assert [one.mime for one in asset.files] == ["text/html; charset=utf-8", "text/javascript; charset=utf-8"]


@pytest.mark.parametrize(
    "files",
    [
        {"a.html": INDEX},
        {"index.html": INDEX, "../a.js": b""},
        {"index.html": INDEX, "/etc/a.js": b""},
        {"index.html": INDEX, "a/../../b.js": b""},
        {"index.html": INDEX, "a\\b.js": b""},
        {"index.html": INDEX, "a.php": b""},
        {"index.html": INDEX, "a.exe": b""},
        {"index.html": INDEX, ".htaccess": b""},
        {"index.html": INDEX, "A.js": b"", "a.js": b""},
        {"index.html": INDEX} | {f"{number}.js": b"" for number in range(FILES_MAX)},
    ],
    ids=range(10),
)
def test_a_creative_with_a_file_that_it_may_not_have_is_refused(files: dict[str, bytes]) -> None:
    with pytest.raises(AssetRefusedError):
        prepare_asset(a_zip(files), SETTINGS)


def test_a_creative_that_unpacks_to_too_much_is_refused() -> None:
    bomb = a_zip({"index.html": INDEX, "a.txt": bytes(50_000_000)})
    assert len(bomb) < 100_000

    with pytest.raises(AssetTooLargeError):
        prepare_asset(bomb, SETTINGS)


def test_a_link_in_a_creative_is_refused() -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("index.html", INDEX)
        link = zipfile.ZipInfo("a.js")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")

    with pytest.raises(AssetRefusedError, match="link"):
        prepare_asset(written.getvalue(), SETTINGS)
