"""Where a banner is looked at before any reader does: a page of its own, without rights, filled by the tag itself.

What it shows stands in the part of its address that is never sent, so it needs no log-in and tells nobody anything.
"""

import functools
from typing import Final

from fastapi import APIRouter, Response

from adloom.console.theme import asset
from adloom.serving.tag.script import assemble

PREVIEW: Final = "/console/preview"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src http: https: data:; "
    "media-src http: https:; frame-src http: https:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox allow-scripts"
)
# A sandboxed page has no origin, so everything it loads from us must be public.
OPEN: Final = {"Cross-Origin-Resource-Policy": "cross-origin", "Cache-Control": "no-cache"}
FRAMED: Final = {**OPEN, "Content-Security-Policy": POLICY, "X-Frame-Options": "SAMEORIGIN"}

router = APIRouter(include_in_schema=False)


@router.get(PREVIEW)
async def serve_page() -> Response:
    return Response(asset("preview.html"), media_type="text/html", headers=FRAMED)


@router.get(f"{PREVIEW}/stage.js")
async def serve_stage() -> Response:
    return Response(asset("stage.js"), media_type="text/javascript", headers=OPEN)


@router.get(f"{PREVIEW}/tag.js")
async def serve_tag() -> Response:
    return Response(_tag(), media_type="text/javascript", headers=OPEN)


@functools.cache
def _tag() -> bytes:
    return assemble().body
