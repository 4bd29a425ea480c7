"""The script of the tag: put together from its parts once, and served as it is for as long as caches like."""

import gzip
import re
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoute, encode_head
from adloom.serving.tag.shorten import shortened

SCRIPT_PATH: Final = b"/tag.js"
NAMED_PREFIX: Final = b"/tag-"
BROWSER_PARTS: Final = Path(__file__).parent / "browser"
# Each may use what those before it have made.
PARTS: Final = ("settings", "reports", "viewing", "creative", "layouts", "space", "tag")
HASH_CHARACTERS: Final = 16
# Long enough to spare a reader's second page the request, short enough to mend a mistake the same hour.
SHORT_CACHE: Final = b"public, max-age=300, stale-while-revalidate=86400"
LONG_CACHE: Final = b"public, max-age=31536000, immutable"

_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_AROUND_SIGNS: Final = re.compile(r"\s*([{};:,])\s*")


class Script(msgspec.Struct, frozen=True):
    """The script, and the name that nothing else will ever have."""

    body: bytes
    zipped: bytes
    name: str

    @property
    def path(self) -> str:
        """Where it is for good."""
        return f"{NAMED_PREFIX.decode()}{self.name}.js"


def assemble(folder: Path = BROWSER_PARTS) -> Script:
    """Put the parts into one scope that the page does not see.

    A second tag on a page does nothing, nor does a browser that is too old for the style.
    """
    sheet = _sheet((folder / "tag.css").read_text(encoding="utf-8"))
    code = "\n".join((folder / f"{part}.js").read_text(encoding="utf-8") for part in PARTS)
    text = (
        '"use strict";\n!document.adoptedStyleSheets || (window.adloom || 0).refresh || (() => {\n'
        f"const STYLE = {msgspec.json.encode(sheet).decode()};\n{code}\n}})();\n"
    )
    body = shortened(text).encode()
    return Script(body, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:HASH_CHARACTERS])


def _sheet(source: str) -> str:
    return _AROUND_SIGNS.sub(r"\1", _COMMENT.sub("", source)).replace(";}", "}").strip()


class ScriptRoutes:
    """Serves the script by its short name and by the one that changes with it."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or assemble()
        self._named = self.script.path.encode()
        self._etag = b'W/"%b"' % self.script.name.encode()
        self._short = self._answers(SHORT_CACHE)
        self._long = self._answers(LONG_CACHE)

    def routes(self) -> list[FastRoute]:
        """List what this answers."""
        return [
            FastRoute(b"GET", SCRIPT_PATH, is_prefix=False, handler=self.answer),
            FastRoute(b"GET", NAMED_PREFIX, is_prefix=True, handler=self.answer),
        ]

    def answer(self, request: FastRequest) -> FastAnswer:
        """Give the script; a page with the name of an older one gets the newest, and not for long."""
        plain, zipped, unchanged = self._long if request.path == self._named else self._short
        if self._etag in (request.header(b"if-none-match") or b""):
            return unchanged
        return zipped if b"gzip" in (request.header(b"accept-encoding") or b"") else plain

    def _answers(self, caching: bytes) -> tuple[FastAnswer, FastAnswer, FastAnswer]:
        kept = (
            (b"cache-control", caching),
            (b"etag", self._etag),
            (b"vary", b"accept-encoding"),
            (b"content-location", self._named),
        )
        # Also for pages that let nothing in from elsewhere that does not say so.
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
