"""The script of the tag: assembled and minified once, then served from memory. So is the one that explains a page."""

import gzip
import re
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final, cast

import msgspec
from rjsmin import jsmin  # pyright: ignore[reportUnknownVariableType] - it is untyped

from adloom.core.public_paths import NEUTRAL_NAMES, SCRIPT, name_neutrally
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoute, encode_head

NAMED_PREFIX: Final = "/tag-"
DEBUG_PATH: Final = "/tag-debug.js"
# What the script asks for, as its parts name it.
ASKED_PATHS: Final = (
    "/v1/serve/page",
    "/v1/classify-page",
    "/v1/preview",
    "/banners/events/batch",
    DEBUG_PATH,
)
OWN_NAME: Final = "'/tag'"
BROWSER_PARTS: Final = Path(__file__).parent / "browser"
# In order: each may use what the parts before it define.
PARTS: Final = ("settings", "reports", "viewing", "creative", "layouts", "space", "text", "tag")
DEBUG_PART: Final = "debug"
HASH_CHARACTERS: Final = 16
# Long enough to spare a visitor's second page the request, short enough to fix a mistake within the hour.
SHORT_CACHE: Final = b"public, max-age=300, stale-while-revalidate=86400"
LONG_CACHE: Final = b"public, max-age=31536000, immutable"

_NUMBER: Final = re.compile(r"^const ([A-Z_]+) = (\d+);.*$", re.MULTILINE)
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_AROUND_SIGNS: Final = re.compile(r"\s*([{};:,])\s*")


class Script(msgspec.Struct, frozen=True):
    """The script, and the name by its content."""

    body: bytes
    zipped: bytes
    name: str
    named_prefix: str = NAMED_PREFIX

    @property
    def path(self) -> str:
        """The address that never changes its content."""
        return f"{self.named_prefix}{self.name}.js"


def assemble(folder: Path = BROWSER_PARTS, *, prefix: str = "", is_below: bool = False) -> Script:
    """Put the parts into one scope that the page does not see; it uses the names below a prefix if there is one.

    One that is itself below the prefix asks for what lies beside it. A second tag on a page does nothing. Neither does a browser without constructed style sheets.
    """
    sheet = _minify_css((folder / "tag.css").read_text(encoding="utf-8"))
    code = "\n".join((folder / f"{part}.js").read_text(encoding="utf-8") for part in PARTS)
    code = _rename_paths(code, prefix, is_below=is_below) if prefix else code
    text = (
        '"use strict";\n!document.adoptedStyleSheets || (window.adloom || 0).refresh || (() => {\n'
        f"const STYLE = {msgspec.json.encode(sheet).decode()};\n{_inline_numbers(code)}\n}})();\n"
    )
    body = cast("str", jsmin(text)).encode()
    named_prefix = name_neutrally(NAMED_PREFIX, prefix if is_below else "")
    return Script(
        body, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:HASH_CHARACTERS], named_prefix
    )


def _rename_paths(code: str, prefix: str, *, is_below: bool) -> str:
    start = "" if is_below else f"{prefix[1:]}/"
    for path in ASKED_PATHS:
        assert path[1:] in code
        code = code.replace(path[1:], f"{start}{NEUTRAL_NAMES[path][1:]}")
    return code.replace(OWN_NAME, f"'{NEUTRAL_NAMES[SCRIPT].removesuffix('.js')}'") if is_below else code


def assemble_debug() -> Script:
    """Put what explains a page into a scope of its own; the tag loads it where it is asked for."""
    code = (BROWSER_PARTS / f"{DEBUG_PART}.js").read_text(encoding="utf-8")
    body = cast("str", jsmin(f'"use strict";\n(() => {{\n{code}\n}})();\n')).encode()
    return Script(body, gzip.compress(body, mtime=0), sha256(body).hexdigest()[:HASH_CHARACTERS])


def _inline_numbers(code: str) -> str:
    """Write constants where they are used: the minifier does not, and their names are 100 bytes of the script."""
    numbers = dict(_NUMBER.findall(code))
    names = re.compile(rf"\b({'|'.join(numbers)})\b")
    return names.sub(lambda found: numbers[found[1]], _NUMBER.sub("", code))


def _minify_css(source: str) -> str:
    return _AROUND_SIGNS.sub(r"\1", _COMMENT.sub("", source)).replace(";}", "}").strip()


class ScriptRoutes:
    """Serves the script by its short name and by the name that changes with its content."""

    def __init__(
        self, script: Script | None = None, *, script_path: str = SCRIPT, debug_path: str = DEBUG_PATH
    ) -> None:
        self.script = script or assemble()
        self._script_path, self._debug_path = script_path.encode(), debug_path.encode()
        self._named = self.script.path.encode()
        self._short = ScriptAnswers(self.script, SHORT_CACHE)
        self._long = ScriptAnswers(self.script, LONG_CACHE)
        self._debug = ScriptAnswers(assemble_debug(), SHORT_CACHE, located_at=self._debug_path)

    def list_routes(self) -> list[FastRoute]:
        return [
            FastRoute(b"GET", self._script_path, is_prefix=False, handler=self.answer),
            FastRoute(b"GET", self.script.named_prefix.encode(), is_prefix=True, handler=self.answer),
            FastRoute(b"GET", self._debug_path, is_prefix=False, handler=self._debug.answer),
        ]

    def answer(self, request: FastRequest) -> FastAnswer:
        """Return the script; the name of an older one gets the newest, cached briefly."""
        return (self._long if request.path == self._named else self._short).answer(request)


def build_script_routes(prefix: str) -> list[FastRoute]:
    """Return the routes of the script, and those of one below the prefix if there is one."""
    routes = ScriptRoutes(assemble(prefix=prefix)).list_routes()
    if not prefix:
        return routes
    below = ScriptRoutes(
        assemble(prefix=prefix, is_below=True),
        script_path=name_neutrally(SCRIPT, prefix),
        debug_path=name_neutrally(DEBUG_PATH, prefix),
    )
    return [*routes, *below.list_routes()]


class ScriptAnswers:
    """The answers for a script that is cached in one way."""

    def __init__(self, script: Script, caching: bytes, *, located_at: bytes | None = None) -> None:
        self._etag = b'W/"%b"' % script.name.encode()
        kept = (
            (b"cache-control", caching),
            (b"etag", self._etag),
            (b"vary", b"accept-encoding"),
            (b"content-location", located_at or script.path.encode()),
        )
        # Also for pages with a cross-origin embedder policy.
        everywhere = (
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"cross-origin"),
        )
        kind = (b"text/javascript; charset=utf-8", *kept, *everywhere)
        zipped = (b"content-encoding", b"gzip")
        self._plain = FastAnswer(encode_head(HTTPStatus.OK, *kind), script.body)
        self._zipped = FastAnswer(encode_head(HTTPStatus.OK, *kind, zipped), script.zipped)
        self._unchanged = FastAnswer(encode_head(HTTPStatus.NOT_MODIFIED, None, *kept))

    def answer(self, request: FastRequest) -> FastAnswer:
        if self._etag in (request.get_header(b"if-none-match") or b""):
            return self._unchanged
        return self._zipped if b"gzip" in (request.get_header(b"accept-encoding") or b"") else self._plain
