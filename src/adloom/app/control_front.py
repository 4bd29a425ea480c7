"""What is at the control plane's door: a browser is led to the console, a program is told where everything is."""

from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from adloom import VERSION

CONSOLE: Final = "/console"

router = APIRouter()


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def front(request: Request) -> Response:
    """Redirect a browser to the console; tell a program the addresses."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(CONSOLE, 303)
    address = request.app.state.public_url
    return JSONResponse(
        {
            "name": "Adloom",
            "version": VERSION,
            "console": f"{address}{CONSOLE}",
            "openapi": f"{address}/openapi.json",
            "health": f"{address}/health/ready",
            "logIn": f"{address}/auth/login",
        },
        headers={"Vary": "Accept"},
    )
