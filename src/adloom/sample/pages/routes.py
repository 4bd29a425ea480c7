"""The routes of the sample: its pages and pictures, while the sample is loaded."""

from collections.abc import Callable, Iterator
from functools import cache
from http import HTTPStatus
from typing import Final

from adloom.core.errors import NotFoundError
from adloom.runtime.http.fast.fast_routes import (
    FastAnswer,
    FastRequest,
    FastRoute,
    encode_head,
    make_problem_answer,
)
from adloom.sample.content.catalog import BANNERS, read_data
from adloom.sample.content.document import find_phone_picture, find_picture
from adloom.sample.content.pictures import FOLDER, FREE_PATH, HILLS, PALETTES, SUBJECTS, Picture
from adloom.sample.pages.pages import STYLE_PATH, list_sample_pages

HTML: Final = b"text/html; charset=utf-8"
CSS: Final = b"text/css; charset=utf-8"
SVG: Final = b"image/svg+xml"
CACHED: Final = (b"cache-control", b"max-age=300")
# Banners may show images from elsewhere; scripts and styles are ours only.
GUARDED: Final = (
    b"content-security-policy",
    b"default-src 'self'; img-src * data:; media-src *; frame-src *; base-uri 'none'; frame-ancestors 'self'",
)
GONE: Final = make_problem_answer(
    NotFoundError("The sample is not here. `adloom sample load` brings it back.")
)


def build_sample_routes(is_there: Callable[[], bool]) -> list[FastRoute]:
    """Return the routes; they answer 404 while the sample is not loaded."""

    def guard(answer_for: Callable[[bytes], FastAnswer]) -> Callable[[FastRequest], FastAnswer]:
        return lambda request: answer_for(request.path) if is_there() else GONE

    paths = [*list_sample_pages(), STYLE_PATH]
    return [
        *(FastRoute(b"GET", path.encode(), is_prefix=False, handler=guard(_answer_text)) for path in paths),
        FastRoute(b"GET", FOLDER.encode(), is_prefix=True, handler=guard(_answer_picture)),
    ]


@cache
def _answer_text(path: bytes) -> FastAnswer:
    name = path.decode()
    if name == STYLE_PATH:
        return _answer(read_data("page.css").decode(), CSS)
    return _answer(list_sample_pages()[name].render_html(), HTML)


def _answer_picture(path: bytes) -> FastAnswer:
    if path == FREE_PATH.encode():
        return _answer(read_data("your-ad.svg").decode(), SVG)
    picture = _index_pictures().get(path.decode("latin-1"))
    return GONE if picture is None else _answer(picture.render_svg(), SVG)


@cache
def _index_pictures() -> dict[str, Picture]:
    return {picture.path: picture for picture in _list_pictures()}


def _list_pictures() -> Iterator[Picture]:
    """Yield every picture that a page or a banner may show: each subject and palette in the sizes we use."""
    for banner in BANNERS:
        yield find_picture(banner)
        phone = find_phone_picture(banner)
        if phone is not None:
            yield phone
    for subject in (*SUBJECTS, HILLS):
        for palette in PALETTES:
            for width, height in ((1200, 675), (600, 400), (900, 600), (500, 500), (800, 800), (64, 64)):
                yield Picture(subject, palette, width, height)


def _answer(text: str, content_type: bytes) -> FastAnswer:
    return FastAnswer(encode_head(HTTPStatus.OK, content_type, CACHED, GUARDED), text.encode())
