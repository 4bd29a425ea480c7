"""Pages of every kind: a named failure of that page, never of the crawl."""

import asyncio
import gzip

from adloom.pages.crawl.model import CrawlState, UrlState
from tests.support.crawls import CrawlWorld
from tests.support.website import Website, head

TEXT = (
    "Mash three ripe bananas with a fork. Beat butter and brown sugar, add two eggs, then fold in the flour. "
    * 3
)
ARTICLE = f"<html><head><title>Bread</title></head><body><article><h1>Bread</h1><p>{TEXT}</p></article></body></html>"


async def trickle(writer: asyncio.StreamWriter) -> None:
    writer.write(head(200, {"Content-Type": "text/html"}))
    for _ in range(60):
        writer.write(b"<p>")
        await writer.drain()
        await asyncio.sleep(0.5)


async def flood(writer: asyncio.StreamWriter) -> None:
    writer.write(head(200, {"Content-Type": "text/html"}))
    for _ in range(200):
        writer.write(b"<p>endless " * 8_000)
        await writer.drain()


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()


BODIES = {
    "/unclosed": f"<html><body><div><p>{TEXT}<b><i><table><tr><td>".encode(),
    "/deep": b"<div>" * 100_000 + TEXT.encode(),
    "/wide": b"<br>" * 100_000 + TEXT.encode(),
    "/nulls": f"<html><body>\0\0<p>{TEXT}\0".encode(),
    "/binary": bytes(range(256)) * 2_000,
    "/wrong-charset": b'<html><head><meta charset="klingon"></head><body><p>'
    + TEXT.encode()
    + b"\xff\xfe\xe4",
    "/utf-16": ARTICLE.encode("utf-16"),
    "/attributes": b"<p " + b"".join(b'a%d="1" ' % n for n in range(50_000)) + b">" + TEXT.encode(),
    "/one-attribute": b'<p a="' + b"x" * 1_500_000 + b'">' + TEXT.encode(),
    "/entities": b"<p>" + b"&amp;&#x110000;&#0;&nope;" * 20_000 + TEXT.encode(),
    "/base": b'<base href="http://[::1"><a href="//[x">x</a><a href="http://a.test:99999/">y</a><p>'
    + TEXT.encode(),
    "/canonical": b'<link rel="canonical" href="http://[broken"><p>' + TEXT.encode(),
    "/xml": b'<?xml version="1.0" encoding="utf-9"?><html><p>' + TEXT.encode() + b"</p></html>",
    "/doctype": b'<!DOCTYPE html [<!ENTITY a SYSTEM "file:///etc/passwd">]><p>&a;' + TEXT.encode(),
    "/comment": b"<!-- " * 100_000,
    "/surrogates": b"<title>\xed\xa0\x80</title><p>" + TEXT.encode() + b"\xed\xb0\x80",
}


async def test_a_hostile_page_fails_by_itself(world: CrawlWorld, website: Website) -> None:
    answers = {"/trickle": trickle, "/flood": flood, "/close": close}
    others = ["/bomb", "/huge", "/broken-gzip", "/loop"]
    links = "".join(f'<a href="{path}">x</a>' for path in [*BODIES, *answers, *others, "/last"])
    website.say("/", ARTICLE.replace("</article>", f"</article>{links}"))
    for path, body in BODIES.items():
        website.say(path, body, "text/html")
    website.replies.update(answers)
    website.say("/bomb", gzip.compress(b"<p>" + bytes(30_000_000)), Content_Encoding="gzip")
    website.say("/huge", b"<p>" + b"x" * 3_000_000)
    website.say("/broken-gzip", b"\x1f\x8b\x08nonsense", Content_Encoding="gzip")
    website.redirect("/loop", "/loop/")
    website.redirect("/loop/", "/loop")
    website.say("/last", ARTICLE)
    site = await world.add_site("a.test", max_depth=1)

    crawl = await world.crawl(site)

    assert crawl.state is CrawlState.FINISHED, crawl
    failed = await world.reasons(site, crawl, UrlState.FAILED)
    assert all(failed.values()), "each has a reason"
    wanted = {"/trickle", "/flood", "/close", "/bomb", "/huge", "/broken-gzip", "/loop"}
    assert wanted <= set(failed), failed
    pages = set(await world.pages())
    assert {
        "/",
        "/last",
        "/unclosed",
        "/nulls",
        "/wrong-charset",
        "/utf-16",
        "/base",
        "/canonical",
    } <= pages, failed
    skipped = await world.reasons(site, crawl, UrlState.SKIPPED)
    known = set(failed) | set(skipped) | pages
    assert set(BODIES) <= known, "every page has come to something"
