"""The look: one stylesheet and one small script, known by their hashes, so that browsers keep them."""

import functools
import hashlib
from importlib import resources
from typing import Final

from fastapi import APIRouter, Request, Response

from adloom.core.errors import NotFoundError

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

router = APIRouter()


@functools.cache
def asset(name: str) -> bytes:
    return resources.files("adloom.console").joinpath("assets", name).read_bytes()


@functools.cache
def asset_address(name: str) -> str:
    """Return the address of an asset; it changes with the content."""
    return f"/console/assets/{name}?v={hashlib.sha256(asset(name)).hexdigest()[:12]}"


def head() -> str:
    """Return the tags of the page head; the script comes first, so that no page flashes in the wrong colours."""
    return (
        f'<script src="{asset_address("console.js")}"></script>'
        f'<link rel="stylesheet" href="{asset_address("console.css")}">'
        f'<link rel="icon" href="{asset_address("mark.svg")}" type="image/svg+xml">'
    )


@router.get("/console/assets/{name}", include_in_schema=False)
async def serve_asset(name: str, request: Request) -> Response:
    """Serve an asset; an address with the current hash is cached for good."""
    if name not in ASSETS:
        raise NotFoundError("There is nothing at this address.")
    is_known = str(request.url).endswith(asset_address(name))
    headers = {"Cache-Control": KEPT if is_known else "no-cache"}
    return Response(asset(name), media_type=ASSETS[name], headers=headers)
