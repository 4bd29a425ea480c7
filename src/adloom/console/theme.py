"""The stylesheet and the script, cached by the hash in their address, and the sandboxed preview page."""

import functools
import gzip
import hashlib
from importlib import resources
from typing import Final, Literal

from fastapi import APIRouter, Request, Response

from adloom.core.errors import NotFoundError
from adloom.serving.tag.script import assemble

ASSETS: Final = {"console.css": "text/css", "console.js": "text/javascript", "mark.svg": "image/svg+xml"}
KEPT: Final = "public, max-age=31536000, immutable"
# Banner images come from anywhere; scripts, styles and sockets only from here. NiceGUI compiles templates
# in the browser and puts a script into the page, so it needs both "unsafe" sources.
POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob: http: https:; media-src 'self' data: blob: http: https:; font-src 'self' data:; "
    "connect-src 'self'; frame-src 'self' blob: http: https:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)

router = APIRouter(include_in_schema=False)
# The banner is in the fragment of the address, which is never sent: the page needs no log-in.
PREVIEW: Final = "/console/preview"
PREVIEW_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src http: https: data:; "
    "media-src http: https:; frame-src http: https:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox allow-scripts"
)
# A sandboxed page has no origin, so everything it loads from us must be public.
PUBLIC_HEADERS: Final = {"Cross-Origin-Resource-Policy": "cross-origin", "Cache-Control": "no-cache"}
PREVIEW_HEADERS: Final = {
    **PUBLIC_HEADERS,
    "Content-Security-Policy": PREVIEW_POLICY,
    "X-Frame-Options": "SAMEORIGIN",
}


@functools.cache
def find_asset(name: str) -> bytes:
    return resources.files("adloom.console").joinpath("assets", name).read_bytes()


@functools.cache
def _compress(name: str) -> bytes:
    return gzip.compress(find_asset(name))


@functools.cache
def find_asset_address(name: str) -> str:
    """Return the address of an asset; it changes with the content."""
    return f"/console/assets/{name}?v={hashlib.sha256(find_asset(name)).hexdigest()[:12]}"


# Browsers that know it ask for the next page when the button goes down, not when it comes up. Not before: each page that
# is asked for is built, and its figures are those of that moment.
SPECULATION: Final = (
    '<script type="speculationrules">{"prefetch":[{"where":{"selector_matches":".al-nav-link"},'
    '"eagerness":"conservative"}]}</script>'
)


def build_head() -> str:
    """Return the tags of the page head; the script comes first, so that no page flashes in the wrong colours."""
    return (
        f'<script src="{find_asset_address("console.js")}"></script>'
        f'<link rel="stylesheet" href="{find_asset_address("console.css")}">'
        f'<link rel="icon" href="{find_asset_address("mark.svg")}" type="image/svg+xml">'
    )


@router.get("/console/assets/{name}")
async def serve_asset(name: str, request: Request) -> Response:
    """Serve an asset; an address with the current hash is cached for good."""
    if name not in ASSETS:
        raise NotFoundError("There is nothing at this address.")
    is_known = str(request.url).endswith(find_asset_address(name))
    headers = {"Cache-Control": KEPT if is_known else "no-cache", "Vary": "Accept-Encoding"}
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return Response(find_asset(name), media_type=ASSETS[name], headers=headers)
    headers["Content-Encoding"] = "gzip"
    return Response(_compress(name), media_type=ASSETS[name], headers=headers)


@router.get(PREVIEW)
async def serve_page() -> Response:
    return Response(find_asset("preview.html"), media_type="text/html", headers=PREVIEW_HEADERS)


@router.get(f"{PREVIEW}/{{name}}.js")
async def serve_script(name: Literal["stage", "tag"]) -> Response:
    body = find_asset("stage.js") if name == "stage" else _assemble_tag()
    return Response(body, media_type="text/javascript", headers=PUBLIC_HEADERS)


@functools.cache
def _assemble_tag() -> bytes:
    return assemble().body
