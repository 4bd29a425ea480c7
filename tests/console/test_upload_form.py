"""A file in the form of a banner: what it says of itself, and how large it may be on its way."""

from typing import Any

import pytest

from adloom.console.components.forms.upload import describe_file
from adloom.runtime.http.api.middleware import BODY_BYTES_MAX, BODY_BYTES_MAX_AT, find_bytes_max
from tests.console.visitor import Visitor
from tests.support.control import ControlPlane

URL = "https://ads.example.com/p/a"


def an_asset(kind: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "url": URL, "width": 60, "height": 40, "variants": {}, **fields}


def test_a_picture_fills_its_address_its_size_and_its_smaller_versions() -> None:
    asset = an_asset("image", variants={"mobile": f"{URL}1", "tablet": f"{URL}2"})
    before = {
        "mediaVariants": {"de": "https://a.example.com/de.png", "tablet": "https://a.example.com/old.png"}
    }

    assert describe_file(asset, before) == {
        "width": 60,
        "height": 40,
        "primaryImageUrl": URL,
        "mobileImageUrl": f"{URL}1",
        "mediaVariants": {"de": "https://a.example.com/de.png", "tablet": f"{URL}2"},
    }


def test_another_picture_is_not_left_with_the_smaller_versions_of_the_last() -> None:
    filled = describe_file(an_asset("image"), {"mediaVariants": {"tablet": URL}})

    assert (filled["mobileImageUrl"], filled["mediaVariants"]) == ("", {})


def test_a_video_and_a_creative_leave_the_picture() -> None:
    assert describe_file(an_asset("video"), {}) == {"videoUrl": URL}
    assert describe_file(an_asset("html", width=None), {"mediaVariants": {"de": "x"}}) == {
        "mediaVariants": {"de": "x", "html": URL}
    }


@pytest.mark.parametrize(
    ("path", "bytes_max"),
    [
        ("/_nicegui/client/0a-b/upload/12", BODY_BYTES_MAX_AT["/admin/assets"]),
        ("/admin/assets", BODY_BYTES_MAX_AT["/admin/assets"]),
        ("/admin/assets/1", BODY_BYTES_MAX),
        ("/_nicegui/client/a/upload/12/more", BODY_BYTES_MAX),
        ("/admin/banners", BODY_BYTES_MAX),
    ],
)
def test_only_files_are_large_on_their_way(path: str, bytes_max: int) -> None:
    assert find_bytes_max(path) == bytes_max


async def test_a_file_is_taken_only_from_our_pages_and_from_somebody_who_is_logged_in(
    console: ControlPlane, ann: Visitor
) -> None:
    path = "/_nicegui/client/00000000-0000-0000-0000-000000000000/upload/1"
    own = {"origin": console.app.state.public_url}
    async with console.client() as stranger:
        refused = [
            await stranger.post(path, content=b"1", headers=own),
            await ann.post(path, content=b"1", headers={"origin": "https://elsewhere.example"}),
        ]
    passed, read = await ann.post(path, content=b"1", headers=own), await ann.get(path)

    assert [one.status_code for one in refused] == [403, 403]
    assert (passed.status_code, read.status_code) == (404, 404)  # No such form is open.
    assert passed.headers["cache-control"] == "no-store"
