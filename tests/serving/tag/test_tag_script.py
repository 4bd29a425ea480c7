"""The script of the tag: small, cached by its versioned name, and written for browsers of 2020."""

import gzip
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.serving.contextual import decide, fill, page_lookup
from adloom.serving.tag.script import (
    BROWSER_PARTS,
    DEBUG_PART,
    PARTS,
    Script,
    ScriptRoutes,
    assemble,
    assemble_debug,
    build_script_routes,
)
from tests.support.for_each import for_each

# rjsmin does not shorten names: 8.7 KB. A minifier of our own, 200 lines, saved a tenth and was dropped.
GZIPPED_BYTES_MAX = 8_700
LINES_MAX = 400
NODE = shutil.which("node")
# Syntax that is newer than 2020, and calls that could turn text into markup or code.
TOO_NEW = re.compile(
    r"\?\?=|\|\|=|&&=|\.at\(|\.replaceAll\(|hasOwn\(|structuredClone|\bstatic\b|\.#|Array\.fromAsync"
)
UNSAFE = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|cookie")


def ask(path: str, routes: ScriptRoutes | None = None, **headers: str) -> FastAnswer:
    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return (routes or ScriptRoutes()).answer(FastRequest(b"GET", path.encode(), headers=sent))


def test_the_script_is_small() -> None:
    answer = ask("/tag.js", accept_encoding="gzip, br")

    assert b"content-encoding: gzip\r\n" in answer.head
    assert len(answer.body) < GZIPPED_BYTES_MAX


def test_the_script_is_the_same_with_and_without_gzip() -> None:
    plain, zipped = ask("/tag.js"), ask("/tag.js", accept_encoding="gzip")

    assert gzip.decompress(zipped.body) == plain.body
    assert b"content-encoding" not in plain.head
    assert b"vary: accept-encoding\r\n" in plain.head


def test_the_versioned_name_is_cached_forever_and_the_short_name_for_five_minutes() -> None:
    script = assemble()

    assert b"max-age=31536000, immutable\r\n" in ask(script.path).head
    short = ask("/tag.js").head
    assert b"max-age=300," in short
    assert f"content-location: {script.path}\r\n".encode() in short


def test_the_name_of_an_older_script_returns_the_newest_one() -> None:
    answer = ask("/tag-0123456789abcdef.js")

    assert answer.body == assemble().body
    assert b"immutable" not in answer.head


def test_a_current_etag_is_answered_with_304() -> None:
    routes = ScriptRoutes()
    etag = f'W/"{routes.script.name}"'

    answer = ask("/tag.js", routes, if_none_match=etag)

    assert answer.head.startswith(b"HTTP/1.1 304 ")
    assert answer.body == b""
    assert ask("/tag.js", routes, if_none_match='W/"another"').head.startswith(b"HTTP/1.1 200 ")


def test_another_script_has_another_name(tmp_path: Path) -> None:
    for part in BROWSER_PARTS.iterdir():
        (tmp_path / part.name).write_bytes(part.read_bytes())
    (tmp_path / "tag.css").write_text("a { color: red; }", encoding="utf-8")

    assert assemble(tmp_path).name != assemble().name


@for_each("part", [*PARTS, DEBUG_PART])
def test_the_source_uses_no_syntax_after_2020_and_creates_no_markup_from_text(part: str) -> None:
    source = (BROWSER_PARTS / f"{part}.js").read_text(encoding="utf-8")

    assert not TOO_NEW.search(source)
    assert not UNSAFE.search(source)
    assert len(source.splitlines()) < LINES_MAX


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
@pytest.mark.parametrize("make", [assemble, assemble_debug])
def test_the_minified_script_parses(tmp_path: Path, make: Callable[[], Script]) -> None:
    assert NODE is not None
    script = tmp_path / "tag.js"
    script.write_bytes(make().body)

    checked = subprocess.run([NODE, "--check", script], capture_output=True, text=True, check=False)

    assert (checked.returncode, checked.stderr) == (0, "")


def test_every_part_is_in_the_script() -> None:
    assert {path.stem for path in BROWSER_PARTS.glob("*.js")} == {*PARTS, DEBUG_PART}


def test_what_explains_a_page_is_a_script_of_its_own() -> None:
    [debug] = [one for one in ScriptRoutes().list_routes() if one.path == b"/tag-debug.js"]

    answer = debug.handler(FastRequest(b"GET", b"/tag-debug.js"))

    assert isinstance(answer, FastAnswer)
    assert b"Adloom on this page" in answer.body
    assert b"Adloom on this page" not in ask("/tag.js").body
    assert b"max-age=300" in answer.head


def test_every_reason_of_an_empty_slot_has_a_sentence() -> None:
    source = (BROWSER_PARTS / "debug.js").read_text(encoding="utf-8")

    explained = set(re.findall(r"^  ([a-z_]+): \"", source, re.MULTILINE))

    named = {
        value
        for module in (decide, page_lookup, fill)
        for name, value in vars(module).items()
        if _is_reason(name, value)
    }
    assert named <= explained
    assert {"page_unknown", "no_demand", "budget", "below_floor"} <= named


def _is_reason(name: str, value: object) -> bool:
    return name.isupper() and isinstance(value, str) and re.fullmatch(r"[a-z_]+", value) is not None


@pytest.mark.parametrize(("path", "asks_for"), [("/tag.js", "a/page"), ("/a/loom.js", "page")])
def test_with_a_prefix_the_script_asks_for_neutral_names_only(path: str, asks_for: str) -> None:
    [route] = [one for one in build_script_routes("/a") if one.path == path.encode()]

    answer = route.handler(FastRequest(b"GET", path.encode()))

    assert isinstance(answer, FastAnswer)
    assert f'read("{asks_for}"'.encode() in answer.body
    assert re.search(rb"v1/|banners/events|tag-debug", answer.body) is None


def test_a_script_below_the_prefix_is_known_and_cached_by_a_name_there() -> None:
    script = assemble(prefix="/a", is_below=True)

    assert script.path == f"/a/loom-{script.name}.js"
    assert b"src*='/loom'" in script.body
    [route] = [one for one in build_script_routes("/a") if one.path == b"/a/loom-"]
    answer = route.handler(FastRequest(b"GET", script.path.encode()))
    assert isinstance(answer, FastAnswer)
    assert b"immutable" in answer.head


def test_without_a_prefix_the_script_is_what_it_was() -> None:
    assert [one.path for one in build_script_routes("")] == [one.path for one in ScriptRoutes().list_routes()]
    assert assemble(prefix="").body == assemble().body
