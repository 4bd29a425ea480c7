"""The crawls of a site: the one that runs, live, and those before it."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json, ProblemError
from adloom.console.components import format as fmt
from adloom.console.components.categories import build_category_chips
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_hint,
    add_html,
    add_notice,
    add_tiles,
    build_badge,
    build_meter,
)
from adloom.console.components.messages import confirm, notify_error, notify_success
from adloom.console.components.table import Column, DataTable, make_number_column
from adloom.console.event_source import Event, follow_site
from adloom.console.page import PageVisit
from adloom.console.resource_pages import Reload

NEWEST_MAX: Final = 8
FAILED_MAX: Final = 10
STATES: Final = {"queued": "Waiting", "running": "Running", "finished": "Finished", "failed": "Failed"}
KINDS: Final = {"queued": "info", "running": "info", "finished": "good", "failed": "bad"}
UNDER_WAY: Final = frozenset({"queued", "running"})
CANCELLED_NOTE: Final = "Pages that were read stay. The next crawl begins anew."


def crawl_badge(crawl: Json) -> Markup:
    return build_badge(STATES[crawl["state"]], KINDS[crawl["state"]])


async def read_latest(visit: PageVisit, site_id: str) -> Json | None:
    rows = await visit.api.get_items(f"/admin/sites/{site_id}/crawls", pageSize=1)
    return rows[0] if rows else None


async def start_crawl(visit: PageVisit, site: Json) -> bool:
    """Start a crawl; where it cannot be, say why."""
    try:
        await visit.api.post(f"/admin/sites/{site['id']}/crawl")
    except ProblemError as error:
        notify_error(error.message)
        return False
    notify_success("The crawl has begun.")
    return True


async def show_crawls(visit: PageVisit, site: Json, _: Reload) -> None:
    live = LiveCrawl(visit, site)
    await live.update()
    with add_div("stack") as past:
        table = _make_table(visit, site)
    await table.show()
    past.set_visibility(live.has_begun)

    async def take(events: Sequence[Event]) -> None:
        shown = live.state
        await live.take(events)
        if live.state != shown:
            await table.show()
            past.set_visibility(live.has_begun)

    follow_site(visit, site["id"], take)


class LiveCrawl:
    """The latest crawl: figures, progress, and the newest pages while it runs."""

    def __init__(self, visit: PageVisit, site: Json) -> None:
        self._visit = visit
        self._site = site
        self._crawl: Json | None = None
        self._pages: list[Json] = []
        self._may_write = visit.may_write
        with add_card("Crawl") as self._card, add_div("stack"):
            self._head = add_div("row-of apart")
            with add_div("stack tight") as self._figures:
                self._tiles = add_tiles("Read", "Classified", "Unchanged", "Failed")
                self._progress = add_html("")
                self._note = add_hint()
            self._newest = add_html("")
            self._failed = add_html("")
        self._shown: object = None

    @property
    def has_begun(self) -> bool:
        """Whether there has ever been a crawl."""
        return self._crawl is not None

    @property
    def is_under_way(self) -> bool:
        return self._crawl is not None and self._crawl["state"] in UNDER_WAY

    @property
    def state(self) -> object:
        """Which crawl is shown, and whether it waits, runs or has ended."""
        return (self._crawl["id"], self._crawl["state"]) if self._crawl else None

    async def update(self) -> None:
        """Read the latest crawl and the newest pages, and show them."""
        crawl = await read_latest(self._visit, self._site["id"])
        path = f"/admin/sites/{self._site['id']}/pages"
        self._pages = await self._visit.api.get_items(path, pageSize=NEWEST_MAX, sort="-updatedAt")
        await self._show(crawl)

    async def take(self, events: Sequence[Event]) -> None:
        """Show what has happened, without asking; a stream that begins anew may have missed something."""
        crawl = self._crawl
        for name, data in events:
            if name == "listening":
                await self.update()
                return
            if name == "crawl":
                crawl = data
            elif name == "page" and "url" in data:
                others = [one for one in self._pages if one["id"] != data["id"]]
                self._pages = [data, *others][:NEWEST_MAX]
        await self._show(crawl)

    async def _show(self, crawl: Json | None) -> None:
        self._crawl = crawl
        self._figures.set_visibility(crawl is not None)
        if crawl is not None:
            self._show_figures(crawl)
        is_live = self.is_under_way and self._pages
        self._newest.content = _list_newest(self._site, self._pages) if is_live else ""
        if self.state != self._shown or not self._head.default_slot.children:
            self._shown = self.state
            self._show_head()
            await self._show_failed()

    def _show_head(self) -> None:
        """Show the state, and the buttons that it allows."""
        crawl = self._crawl
        self._head.clear()
        with self._head:
            if crawl is None:
                self._show_none()
                return
            add_html(
                Markup('<div class="row-of tight">{} <span class="quiet small">{}</span></div>').format(
                    crawl_badge(crawl), _format_times(crawl, self._visit)
                )
            )
            if not self._may_write:
                return
            if self.is_under_way:
                ui.button("Cancel the crawl", icon="stop", on_click=self._ask_cancel).props("outline")
            else:
                ui.button("Crawl now", icon="travel_explore", on_click=self._start).props("unelevated")

    def _show_none(self) -> None:
        with add_div("grow"):
            add_empty_state(
                "travel_explore",
                "Not crawled yet",
                "A crawl reads the pages of the site, politely and within its robots.txt, and finds out what each "
                "page is about.",
                action="Crawl now" if self._may_write else "",
                on_action=self._start if self._may_write else None,
            )

    def _show_figures(self, crawl: Json) -> None:
        read, classified, unchanged, failed = self._tiles
        read.update(
            fmt.format_count(crawl["pagesFetched"]),
            note=f"of at most {fmt.format_count(self._site['maxPages'])}",
        )
        classified.update(fmt.format_count(crawl["pagesClassified"]), note="new or changed")
        unchanged.update(fmt.format_count(crawl["pagesUnchanged"]), note="kept as they were")
        failed.update(
            fmt.format_count(crawl["pagesFailed"]),
            note="see below" if crawl["pagesFailed"] and not self.is_under_way else "",
            kind="warn" if crawl["pagesFailed"] else "",
        )
        share = crawl["pagesFetched"] / max(1, self._site["maxPages"])
        self._progress.content = build_meter(share) if self.is_under_way else ""
        self._note.set_text(crawl["reason"] or "")

    async def _show_failed(self) -> None:
        """Show why pages could not be read, when the crawl has ended."""
        crawl = self._crawl
        if crawl is None or self.is_under_way or not crawl["pagesFailed"]:
            self._failed.content = ""
            return
        path = f"/admin/sites/{self._site['id']}/crawls/{crawl['id']}/urls"
        rows = await self._visit.api.get_items(path, state="failed", pageSize=FAILED_MAX)
        self._failed.content = _list_failed(rows) if rows else ""

    async def _start(self) -> None:
        if await start_crawl(self._visit, self._site):
            await self.update()

    def _ask_cancel(self) -> None:
        async def cancel() -> None:
            assert self._crawl is not None
            await self._visit.api.post(f"/admin/sites/{self._site['id']}/crawls/{self._crawl['id']}/cancel")
            notify_success("The crawl ends.")
            await self.update()

        confirm("Cancel the crawl?", CANCELLED_NOTE, action="Cancel the crawl", on_confirm=cancel)


def _format_times(crawl: Json, visit: PageVisit) -> Markup:
    at = crawl["finishedAt"] or crawl["startedAt"]
    word = "ended" if crawl["finishedAt"] else "begun" if at else ""
    return (
        Markup("{} {}").format(word, fmt.format_ago(at, now=visit.now))
        if at
        else Markup("waits for the crawler")
    )


def _list_newest(site: Json, pages: list[Json]) -> Markup:
    rows = Markup("").join(
        Markup('<li><a class="cut" href="/console/sites/{}/pages/{}">{}</a>{}</li>').format(
            site["id"], page["id"], page["title"] or page["url"], build_category_chips(page["categories"])
        )
        for page in pages
    )
    return Markup('<h3>Newest pages</h3><ul class="al-newest">{}</ul>').format(rows)


def _list_failed(rows: list[Json]) -> Markup:
    items = Markup("").join(
        Markup('<li><span class="cut">{}</span><span class="quiet small">{}</span></li>').format(
            row["url"], row["reason"] or ""
        )
        for row in rows
    )
    return Markup('<h3>What failed</h3><ul class="al-newest">{}</ul>').format(items)


def _make_table(visit: PageVisit, site: Json) -> DataTable:
    return DataTable(
        visit.query,
        [
            Column("State", crawl_badge),
            Column("Begun", lambda row: fmt.format_ago(row["startedAt"], now=visit.now)),
            Column("Took", _describe_duration, is_wide_only=True),
            make_number_column("Read", "pagesFetched"),
            make_number_column("Classified", "pagesClassified"),
            make_number_column("Unchanged", "pagesUnchanged", is_wide_only=True),
            make_number_column("Failed", "pagesFailed", is_wide_only=True),
            Column("What it said", _build_reason, is_wide_only=True),
        ],
        lambda query: visit.api.get(f"/admin/sites/{site['id']}/crawls", **query),
        empty=("history", "No crawls yet", "Each crawl is listed here with what it found."),
        caption="Crawls",
    )


def _describe_duration(crawl: Json) -> str:
    began, ended = fmt.format_moment(crawl["startedAt"]), fmt.format_moment(crawl["finishedAt"])
    return fmt.format_duration((ended - began).total_seconds()) if began and ended else strings.NONE


def _build_reason(crawl: Json) -> Markup:
    return Markup('<div class="al-reason small">{}</div>').format(crawl["reason"] or "")


def crawl_notice(site: Json, crawl: Json) -> None:
    """Say on other tabs that a crawl runs."""
    text = f"{fmt.format_count(crawl['pagesFetched'])} pages are read so far."
    with add_notice(text, title="A crawl is under way"):
        ui.link("Watch it", f"/console/sites/{site['id']}?tab=crawls")
