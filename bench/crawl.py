"""`adloom bench crawl`: pages a second from a website on this machine to their categories, and what a page costs.

As in production: a crawler and a classifier process, on temporary servers. The website is in this process and has no
limits, so the crawler does not wait between its requests.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Final

import msgspec
import typer

from adloom.core.ids import SystemIds
from adloom.runtime.ports import find_port
from bench.figures import MEBIBYTE, BenchTable, judge, show
from bench.processes import LoadError, ShowStatus, measure_usage
from bench.servers import Servers, build_program, run_program, run_servers

DOMAIN: Final = "bench.test"
PAGES_PER_SECOND_MIN: Final = 25.0
CRAWLER_MEBIBYTES_MAX: Final = 150
POLL_SECONDS: Final = 0.25
START_SECONDS: Final = 8.0
CRAWL_SECONDS_MAX: Final = 600.0
PARAGRAPHS: Final = 12

WORDS: Final = [
    "river",
    "market",
    "engine",
    "garden",
    "council",
    "winter",
    "harbour",
    "student",
    "recipe",
    "bicycle",
    "doctor",
    "orchestra",
    "battery",
    "forest",
    "ticket",
    "painter",
    "kitchen",
    "satellite",
    "harvest",
    "railway",
    "museum",
    "teacher",
    "journey",
    "pocket",
    "mountain",
    "letter",
    "window",
    "coffee",
    "summer",
    "travel",
    "budget",
    "player",
    "season",
    "league",
    "theatre",
    "signal",
    "castle",
    "bridge",
    "weather",
    "animal",
    "planet",
    "science",
    "village",
    "factory",
]

NEW_SITE: Final = """
    INSERT INTO sites (public_id, domain, name, max_pages, max_depth, crawl_concurrency, created_at, updated_at)
    VALUES ($1, $2, $2, $3, 1, 8, now(), now()) RETURNING id
"""
NEW_CRAWL: Final = """
    INSERT INTO site_crawls (public_id, site_id, state, created_at) VALUES ($1, $2, 'queued', now())
"""
CRAWL: Final = """
    SELECT state, reason, pages_fetched, pages_classified, pages_unchanged,
           extract(epoch FROM coalesce(finished_at, now()) - started_at)::float8 AS seconds
      FROM site_crawls WHERE public_id = $1
"""


class CrawlFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One crawl: its pages, its time, the CPU time of both processes, and the crawler's memory on the way."""

    pages: int
    seconds: float
    crawler_cpu: float
    classifier_cpu: float
    resident: list[int]


def main(
    *,
    pages: Annotated[int, typer.Option(min=10, max=9_000, help="Pages of the website.")] = 1_000,
    kilobytes: Annotated[int, typer.Option(min=10, max=1_000, help="Size of a page.")] = 30,
) -> None:
    """Crawl and classify a website twice: all pages are new, then none has changed."""
    show(lambda say: asyncio.run(_measure(pages, kilobytes, say)))


async def _measure(pages: int, kilobytes: int, say: ShowStatus) -> BenchTable:
    async with contextlib.AsyncExitStack() as stack:
        servers = await stack.enter_async_context(run_servers())
        port = await stack.enter_async_context(_serve(pages, kilobytes * 1_024))
        site = await servers.pool.fetchval(NEW_SITE, SystemIds().make(), DOMAIN, pages)
        crawler = await stack.enter_async_context(_run(servers, "crawler", port))
        classifier = await stack.enter_async_context(_run(servers, "classifier", port))
        say("starting the crawler and the classifier")
        await asyncio.sleep(START_SECONDS)
        say("crawling")
        first = await _crawl(servers, site, crawler, classifier)
        say("crawling again")
        again = await _crawl(servers, site, crawler, classifier)
    return _tabulate({"all pages are new": first, "none has changed": again}, kilobytes)


def _tabulate(figures: dict[str, CrawlFigures], kilobytes: int) -> BenchTable:
    first = next(iter(figures.values()))
    return BenchTable(
        title=f"{first.pages:,} pages of {kilobytes} KB",
        headings=("", "pages/s", "crawler CPU/page", "classifier CPU/page", "crawler memory: half-way, end"),
        rows=[
            (
                name,
                f"{one.pages / one.seconds:.1f}",
                f"{1_000 * one.crawler_cpu / one.pages:.1f} ms",
                f"{1_000 * one.classifier_cpu / one.pages:.1f} ms",
                f"{max(one.resident[: len(one.resident) // 2 or 1]) / MEBIBYTE:.0f}, {one.resident[-1] / MEBIBYTE:.0f} MiB",
            )
            for name, one in figures.items()
        ],
        goals=[
            judge(
                f"at least {PAGES_PER_SECOND_MIN:.0f} new pages a second",
                first.pages / first.seconds,
                at_least=PAGES_PER_SECOND_MIN,
                form="{:.1f}",
            ),
            judge(
                f"a crawler of at most {CRAWLER_MEBIBYTES_MAX} MiB",
                max(max(one.resident) for one in figures.values()) / MEBIBYTE,
                at_most=CRAWLER_MEBIBYTES_MAX,
                form="{:.0f} MiB",
            ),
        ],
    )


async def _crawl(servers: Servers, site: int, crawler: int, classifier: int) -> CrawlFigures:
    crawl_id = SystemIds().make()
    before = [measure_usage([pid]).cpu_seconds for pid in (crawler, classifier)]
    resident: list[int] = []
    await servers.pool.execute(NEW_CRAWL, crawl_id, site)
    async with asyncio.timeout(CRAWL_SECONDS_MAX):
        while True:
            await asyncio.sleep(POLL_SECONDS)
            resident.append(measure_usage([crawler]).resident_bytes)
            row = await servers.pool.fetchrow(CRAWL, crawl_id)
            assert row is not None
            if row["state"] in {"finished", "failed"}:
                break
    if row["reason"] or row["pages_classified"] + row["pages_unchanged"] != row["pages_fetched"]:
        raise LoadError(f"The crawl ended as {dict(row)}.")
    after = [measure_usage([pid]).cpu_seconds for pid in (crawler, classifier)]
    return CrawlFigures(
        pages=row["pages_fetched"],
        seconds=row["seconds"],
        crawler_cpu=after[0] - before[0],
        classifier_cpu=after[1] - before[1],
        resident=resident,
    )


def _run(servers: Servers, name: str, port: int) -> AbstractAsyncContextManager[int]:
    variables = {
        f"ADLOOM_{name.upper()}_PORT": str(find_port()),
        "ADLOOM_CRAWL_RESOLVE": f"{DOMAIN}=127.0.0.1:{port}",
    }
    return run_program(build_program(servers, name, **variables), servers.log.with_name(f"{name}.log"))


@contextlib.asynccontextmanager
async def _serve(pages: int, size: int) -> AsyncGenerator[int]:
    """Serve a front page, a sitemap and articles."""
    paths = [f"/{number}" for number in range(1, pages)]
    locations = "".join(f"<url><loc>https://{DOMAIN}{path}</loc></url>" for path in paths)
    answers = {path: _answer(_make_page(number, size)) for number, path in enumerate(["/", *paths])}
    answers["/sitemap.xml"] = _answer(f"<urlset>{locations}</urlset>", "application/xml")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                path = request.split(b" ", 2)[1].decode()
                writer.write(answers.get(path) or b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def _answer(body: str, kind: str = "text/html; charset=utf-8") -> bytes:
    content = body.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def _make_page(number: int, size: int) -> str:
    """Make a page as magazines have them: a menu, an article, related links, a footer, and scripts up to its size."""
    sentences = [
        " ".join(
            WORDS[(number * 7 + at * 5 + word * (3 + number % 5)) % len(WORDS)] for word in range(14)
        ).capitalize()
        for at in range(4 * PARAGRAPHS)
    ]
    text = "".join(f"<p>{'. '.join(sentences[at : at + 4])}.</p>" for at in range(0, len(sentences), 4))
    menu = "".join(f'<li class="menu-item"><a href="/{at}">{WORDS[at]}</a></li>' for at in range(1, 10))
    related = "".join(
        f'<li><a href="/{(number + at) % 500 + 1}">{sentences[at]}</a></li>' for at in range(1, 11)
    )
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{sentences[0]}</title>'
        f'<meta name="description" content="{sentences[1]}"></head><body><nav><ul>{menu}</ul></nav>'
        f"<main><article><h1>{sentences[0]}</h1>{text}</article></main><aside><ul>{related}</ul></aside>"
        "<footer><p>Imprint and privacy</p></footer><script>{filling}</script></body></html>"
    )
    filling = f"var data{number}={{}};" + "window.x=(window.x||0)+1;" * (size // 25)
    return page.replace("{filling}", filling[: max(0, size - len(page))])
