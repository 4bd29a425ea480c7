"""Uploaded files for visitors: any part of them, with headers that keep them from doing harm."""

import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.runtime.files.place import CachedFiles
from adloom.runtime.files.store import FilesAwayError, FileStore, FolderStore
from adloom.runtime.http.plain import PlainApp
from adloom.serving.assets.answer import parse_address, parse_range
from adloom.serving.assets.api import AssetApp

DATA = bytes(range(256)) * 1_000
SHA = hashlib.sha256(DATA).hexdigest()
PICTURE, DRAWING, CREATIVE = f"/p/{SHA}.jpg", f"/p/{SHA}.svg", f"/p/{SHA}/index.html"


@pytest.fixture
async def files(tmp_path: Path) -> FolderStore:
    store = FolderStore(tmp_path / "assets")
    for rest in (".jpg", ".svg", "/index.html"):
        await store.write(f"{SHA[:2]}/{SHA}{rest}", DATA, "")
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    return store


def client(files: FileStore, *, prefix: str = "") -> httpx.AsyncClient:
    app = AssetApp(files, PlainApp({}), public_url="https://ads.example.com/sub", prefix=prefix)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://ads")


async def test_a_file_may_be_kept_for_good(files: FolderStore) -> None:
    async with client(files) as visitor:
        answer = await visitor.get(PICTURE)
        again = await visitor.get(PICTURE, headers={"if-none-match": answer.headers["etag"]})
        head = await visitor.head(PICTURE)

    assert answer.content == DATA
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert (again.status_code, again.content) == (304, b"")
    assert (head.content, head.headers["content-length"]) == (b"", str(len(DATA)))


@pytest.mark.parametrize(
    ("asked", "status", "content_range"),
    [
        ("bytes=0-99", 206, f"bytes 0-99/{len(DATA)}"),
        ("bytes=255990-", 206, f"bytes 255990-255999/{len(DATA)}"),
        ("bytes=-5", 206, f"bytes 255995-255999/{len(DATA)}"),
        ("bytes=100-999999999", 206, f"bytes 100-255999/{len(DATA)}"),
        ("bytes=256000-", 416, f"bytes */{len(DATA)}"),
        ("bytes=-0", 416, f"bytes */{len(DATA)}"),
        ("bytes=5-4", 200, None),
        ("bytes=0-1,5-6", 200, None),
        ("lines=1-2", 200, None),
    ],
)
async def test_a_part_of_a_file(
    asked: str, status: int, content_range: str | None, files: FolderStore
) -> None:
    async with client(files) as visitor:
        answer = await visitor.get(PICTURE, headers={"range": asked})

    assert (answer.status_code, answer.headers.get("content-range")) == (status, content_range)
    if status == 206 and content_range:
        first, last = content_range.removeprefix("bytes ").split("/")[0].split("-")
        assert answer.content == DATA[int(first) : int(last) + 1]


async def test_a_part_of_another_version_is_the_whole(files: FolderStore) -> None:
    async with client(files) as visitor:
        answer = await visitor.get(PICTURE, headers={"range": "bytes=0-9", "if-range": '"other"'})

    assert (answer.status_code, len(answer.content)) == (200, len(DATA))


async def test_drawings_and_creatives_have_no_rights(files: FolderStore) -> None:
    async with client(files, prefix="/a") as visitor:
        drawing, creative = await visitor.get(DRAWING), await visitor.get(CREATIVE)
        neutral = await visitor.get(f"/a{CREATIVE}")

    assert "sandbox" in drawing.headers["content-security-policy"].split("; ")[-1]
    assert "script" not in drawing.headers["content-security-policy"]
    policy = creative.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts ")
    assert "allow-same-origin" not in policy
    # Its own folder, and nothing else of delivery: not what is offered to others, nor the events.
    own = f"https://ads.example.com/sub{{}}/p/{SHA}/"
    for answer, prefix in ((creative, ""), (neutral, "/a")):
        rules = dict(one.split(" ", 1) for one in answer.headers["content-security-policy"].split("; "))
        assert rules.pop("sandbox").startswith("allow-scripts ")
        assert rules == {
            "default-src": f"{own.format(prefix)} data: blob: 'unsafe-inline' 'unsafe-eval'",
            "base-uri": "'none'",
            "form-action": "'none'",
        }
    assert creative.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [
        "/p/",
        f"/p/{SHA}",
        f"/p/{SHA}.html",
        f"/p/{SHA}.js",
        f"/p/{SHA}.zip",
        f"/p/{'0' * 64}.jpg",
        "/p/../secret.jpg",
        f"/p/{SHA}/../../../secret.jpg",
        f"/p/{SHA}/%2e%2e/%2e%2e/secret.jpg",
        f"/p/{SHA}//index.html",
        f"/p/{SHA}/a.php",
        f"/p/{SHA.upper()}.jpg",
        "/other",
    ],
)
async def test_nothing_else_is_there(path: str, files: FolderStore) -> None:
    async with client(files) as visitor:
        answer = await visitor.get(path)
        posted = await visitor.post(PICTURE)

    assert answer.status_code == 404
    assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD")


async def test_files_have_a_neutral_name_too(files: FolderStore) -> None:
    async with client(files, prefix="/a") as visitor:
        statuses = [(await visitor.get(f"{prefix}{PICTURE}")).status_code for prefix in ("", "/a")]

    assert statuses == [200, 200]


async def test_a_store_that_is_away_is_said_to_be(
    files: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise FilesAwayError("gone")

    monkeypatch.setattr(files, "open", fail)
    async with client(files) as visitor:
        answer = await visitor.get(PICTURE)

    assert (answer.status_code, answer.json()["errorCode"]) == (503, "UNAVAILABLE")


async def test_small_files_are_asked_for_once(files: FolderStore) -> None:
    cached = CachedFiles(files, bytes_max=len(DATA) * 2)
    async with client(cached) as visitor:
        await visitor.get(PICTURE)
        await visitor.get(DRAWING)
        await files.delete([f"{SHA[:2]}/{SHA}.jpg", f"{SHA[:2]}/{SHA}.svg"])
        kept = [
            (await visitor.get(path, headers={"range": "bytes=1-2"})).content for path in (PICTURE, DRAWING)
        ]
        await visitor.get(CREATIVE)  # The third: the picture, which was not read the longest, goes.
        gone = await visitor.get(PICTURE)

    assert kept == [DATA[1:3]] * 2
    assert gone.status_code == 404


@given(st.text(max_size=120) | st.from_regex(r"[0-9a-f]{64}[./][a-z./]{0,12}", fullmatch=True))
def test_an_address_never_leaves_its_folder(path: str) -> None:
    address = parse_address(path)

    if address is not None:
        parts = address.key.split("/")
        assert parts[0] == address.sha256[:2]
        assert parts[1].startswith(address.sha256)
        assert all(part not in {"", ".", ".."} for part in parts)


@given(st.integers(1, 1_000), st.binary(max_size=20).map(lambda text: b"bytes=" + text) | st.none())
def test_a_range_lies_in_the_file(size: int, text: bytes | None) -> None:
    try:
        found = parse_range(text, size)
    except ValueError:
        return
    if found is not None:
        assert 0 <= found.first <= found.last < size
