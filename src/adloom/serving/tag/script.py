"""The script of the tag: assembled and minified once, then served from memory."""

import gzip
import re
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final, cast

import msgspec
from rjsmin import jsmin  # pyright: ignore[reportUnknownVariableType] - it is untyped

from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoute, encode_head

SCRIPT_PATH: Final = b"/tag.js"
NAMED_PREFIX: Final = b"/tag-"
BROWSER_PARTS: Final = Path(__file__).parent / "browser"
# In order: each may use what the parts before it define.
PARTS: Final = ("settings", "reports", "viewing", "creative", "layouts", "space", "text", "tag")
HASH_CHARACTERS: Final = 16
# Long enough to spare a visitor's second page the request, short enough to fix a mistake within the hour.
SHORT_CACHE: Final = b"public, max-age=300, stale-while-revalidate=86400"
LONG_CACHE: Final = b"public, max-age=31536000, immutable"

_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_AROUND_SIGNS: Final = re.compile(r"\s*([{};:,])\s*")


class Script(msgspec.Struct, frozen=True):
    """The script, and the name by its content."""

    body: bytes
    zipped: bytes
    name: str

    @property
    def path(self) -> str:
        """The address that never changes its content."""
        return f"{NAMED_PREFIX.decode()}{self.name}.js"


def assemble(folder: Path = BROWSER_PARTS) -> Script:
    """Put the parts into one scope that the page does not see.

    A second tag on a page does nothing. Neither does a browser without constructed style sheets.
    """
    sheet = _minify_css((folder / "tag.css").read_text(encoding="utf-8"))
    code = "\n".join((folder / f"{part}.js").read_text(encoding="utf-8") for part in PARTS)
    text = (
        '"use strict";\n!document.adoptedStyleSheets || (window.adloom || 0).refresh || (() => {\n'
        f"const STYLE = {msgspec.json.encode(sheet).decode()};\n{code}\n}})();\n"
    )
    body = cast("str", jsmin(text)).encode()
    return Script(body, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:HASH_CHARACTERS])


def _minify_css(source: str) -> str:
    return _AROUND_SIGNS.sub(r"\1", _COMMENT.sub("", source)).replace(";}", "}").strip()


class ScriptRoutes:
    """Serves the script by its short name and by the name that changes with its content."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or assemble()
        self._named = self.script.path.encode()
        self._etag = b'W/"%b"' % self.script.name.encode()
        self._short = self._build_answers(SHORT_CACHE)
        self._long = self._build_answers(LONG_CACHE)

    def routes(self) -> list[FastRoute]:
        return [
            FastRoute(b"GET", SCRIPT_PATH, is_prefix=False, handler=self.answer),
            FastRoute(b"GET", NAMED_PREFIX, is_prefix=True, handler=self.answer),
        ]

    def answer(self, request: FastRequest) -> FastAnswer:
        """Return the script; the name of an older one gets the newest, cached briefly."""
        plain, zipped, unchanged = self._long if request.path == self._named else self._short
        if self._etag in (request.header(b"if-none-match") or b""):
            return unchanged
        return zipped if b"gzip" in (request.header(b"accept-encoding") or b"") else plain

    def _build_answers(self, caching: bytes) -> tuple[FastAnswer, FastAnswer, FastAnswer]:
        kept = (
            (b"cache-control", caching),
            (b"etag", self._etag),
            (b"vary", b"accept-encoding"),
            (b"content-location", self._named),
        )
        # Also for pages with a cross-origin embedder policy.
        everywhere = (
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"cross-origin"),
        )
        kind = (b"text/javascript; charset=utf-8", *kept, *everywhere)
        zipped = (b"content-encoding", b"gzip")
        return (
            FastAnswer(encode_head(HTTPStatus.OK, *kind), self.script.body),
            FastAnswer(encode_head(HTTPStatus.OK, *kind, zipped), self.script.zipped),
            FastAnswer(encode_head(HTTPStatus.NOT_MODIFIED, None, *kept)),
        )
