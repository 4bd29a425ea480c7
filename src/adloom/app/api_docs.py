"""Swagger UI at `/docs`: the description of the API as a page. Its files come from a wheel, nothing from elsewhere."""

from importlib import resources
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from adloom.core.errors import NotFoundError

PATH: Final = "/docs"
FILES: Final = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
START: Final = """addEventListener("load", () => SwaggerUIBundle({
  url: "/openapi.json", dom_id: "#swagger-ui", deepLinking: true, docExpansion: "none",
  validatorUrl: null, persistAuthorization: false,
}));
"""
PAGE: Final = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Adloom: API</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="{PATH}/swagger-ui.css">
<script src="{PATH}/swagger-ui-bundle.js" defer></script><script src="{PATH}/start.js" defer></script>
</head><body><div id="swagger-ui"></div></body></html>
"""
# Scripts from here alone; styles that the page sets itself; requests to the two listeners that it describes.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self' {delivery}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

router = APIRouter(prefix=PATH, include_in_schema=False)


@router.get("")
async def show_docs(request: Request) -> Response:
    """Show the API as a page on which it can be tried."""
    policy = POLICY.format(delivery=request.app.state.delivery_url)
    return HTMLResponse(PAGE, headers={"Content-Security-Policy": policy, "Cache-Control": "no-store"})


@router.get("/{name}")
async def serve_file(name: str) -> Response:
    headers = {"Cache-Control": "no-cache"}
    if name == "start.js":
        return Response(START, media_type="text/javascript", headers=headers)
    if name not in FILES:
        raise NotFoundError("There is no such file.")
    body = resources.files("fastapi_offline").joinpath("static", name).read_bytes()
    return Response(body, media_type=FILES[name], headers=headers)
