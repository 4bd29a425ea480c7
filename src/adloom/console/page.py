"""How a page is made: `page` checks who is logged in, frames the page and calls its builder.

@register_page("/console/campaigns", title="Campaigns", roles=ADVERTISER_SIDE)
async def campaigns(visit: PageVisit) -> None:
    with heading("Campaigns"): ...
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import structlog
from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from nicegui import ui

from adloom.console.client import ApiClient, ProblemError, SessionEndedError, problem_if_away
from adloom.console.components.format import show_times_in
from adloom.console.components.layout import add_empty_state, add_problem_notice
from adloom.console.components.messages import notify_error
from adloom.console.shell import EVERYBODY, list_entries, show_shell
from adloom.console.sign_in.gate import LOG_IN, SessionGuard, make_log_in_url
from adloom.core.caller import Role
from adloom.core.clock import Clock
from adloom.identity.console_sessions import ConsoleSession
from adloom.schedule.schedule import find_zone

# A page is sent when it is built; put slower work in a timer.
BUILD_SECONDS_MAX: Final = 30.0
# Rest ten times as long as a refresh took, so that open pages do not keep the database busy.
REST: Final = 10
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
FAILED: Final = 500
NOTHING_HERE: Final = "There is nothing at this address"

log: structlog.stdlib.BoundLogger = structlog.get_logger()
REGISTERED: Final[set[str]] = set()


class PageVisit:
    """One opened page: the user, the address and the API client."""

    def __init__(self, request: Request, *, api: ApiClient, clock: Clock, session: ConsoleSession) -> None:
        self.api = api
        self.email = session.email
        self.role = session.user.role
        self.account_id = session.user.account_id  # The advertiser or publisher that the person acts for.
        self.zone = session.time_zone  # None until the person has chosen one.
        self.path = request.url.path
        self.query = dict(request.query_params)
        self.parts: dict[str, str] = {name: str(value) for name, value in request.path_params.items()}
        self._clock = clock

    @property
    def now(self) -> datetime:
        return self._clock.now()

    @property
    def today(self) -> date:
        """The day that it is for the person."""
        return self.now.astimezone(find_zone(self.zone or "UTC") or UTC).date()

    def choose_zone(self, own: str | None) -> str:
        """Return the zone in which to show the times of a thing: the person's, else the thing's own."""
        return self.zone or own or "UTC"

    @property
    def may_write(self) -> bool:
        """Whether the role can change anything: a viewer only reads."""
        return self.role is not Role.VIEWER

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN


Builder = Callable[[PageVisit], Awaitable[None]]


def register_page(
    path: str, *, title: str, roles: AbstractSet[Role] = EVERYBODY
) -> Callable[[Builder], Builder]:
    """Register a page; its path begins with /console."""

    def register(builder: Builder) -> Builder:
        async def build(request: Request) -> Response | None:
            return await _build(request, builder, roles)

        ui.page(path, title=f"{title} · Adloom", response_timeout=BUILD_SECONDS_MAX)(build)
        REGISTERED.add(path)
        return builder

    return register


async def _build(request: Request, builder: Builder, roles: AbstractSet[Role]) -> Response | None:
    guard: SessionGuard = request.state.session_guard
    # Found before this page was begun: `ConsoleRoute` refuses those without a session.
    found: tuple[str, ConsoleSession] = request.state.console_session
    token, session = found
    role = session.user.role
    visit = PageVisit(request, api=guard.make_client(token), clock=guard.clock, session=session)
    show_times_in(visit.zone)
    ui.context.client.on_exception(lambda error: _show_failure(visit.path, error))
    tab = visit.query.get("tab", "")
    entries = list_entries(role, registered=REGISTERED, account_id=session.user.account_id)
    with show_shell(path=visit.path, tab=tab, role=role, email=visit.email, entries=entries, api=visit.api):
        if role not in roles:
            ui.context.client.status_code = FORBIDDEN
            add_empty_state(
                "lock",
                "This page is not for your role",
                f"You are logged in as {role.value}. Ask an admin if you need it.",
                is_all=True,
            )
            return None
        try:
            with problem_if_away():
                await guard.sessions.mark_seen(token, session, now=guard.clock.now())
            await builder(visit)
        except SessionEndedError:
            return RedirectResponse(make_log_in_url(request), 303)
        except ProblemError as error:
            ui.context.client.status_code = error.status
            add_problem_notice(error)
        except Exception as error:  # noqa: BLE001 - a page of ours has a bug: the frame stays, and the log says where
            ui.context.client.status_code = FAILED
            _log_failure(visit.path, error)
            add_empty_state("error", "This page could not be built", "The log says why.", is_all=True)
    return None


def _log_failure(path: str, error: Exception) -> None:
    """Log one line: the page without its query, what went wrong, and where. What a text quotes may be secret."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None
    log.error("console_failed", path=path, error=type(error).__name__, where=where)


def _show_failure(path: str, error: Exception) -> None:
    """Show an error that happened after the page was sent."""
    match error:
        case SessionEndedError():
            ui.navigate.to(f"{LOG_IN}?out")
        case ProblemError():
            notify_error(error.message)
        case _:
            _log_failure(path, error)
            notify_error("Something went wrong on our side. See the log.")


def register_not_found() -> None:
    """Register the page for all other addresses; call it after all pages are registered."""

    async def show_not_found(_: PageVisit) -> None:
        ui.context.client.status_code = NOT_FOUND
        add_empty_state(
            "explore_off",
            NOTHING_HERE,
            "It may have been renamed or removed.",
            action="To the overview",
            href="/console",
            is_all=True,
        )

    register_page("/console/{rest:path}", title=NOTHING_HERE)(show_not_found)


def refresh_every(seconds: float, refresh: Callable[[], Awaitable[object]]) -> None:
    """Refresh regularly, less often if a refresh is slow, and not while the tab is hidden or has no connection."""
    is_visible = True

    async def refresh_and_rest() -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            await refresh()
        finally:
            # The interval runs from start to start.
            timer.interval = max(seconds, (1 + REST) * (clock() - began))

    timer = ui.timer(seconds, refresh_and_rest, immediate=False)

    def on_visibility(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        nonlocal is_visible
        timer.active = is_visible = bool(event.args)

    def on_connect() -> None:
        timer.active = is_visible

    ui.on("adloom_visible", on_visibility)
    ui.context.client.on_connect(on_connect)
    ui.context.client.on_disconnect(timer.deactivate)
