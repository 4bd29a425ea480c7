"""The page that the crawler's `User-Agent` links to: what it is, and how a site keeps it away."""

from http import HTTPStatus
from typing import Final

from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRoute, encode_head
from adloom.runtime.outbound.settings import CRAWLER_PATH

PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>AdloomBot</title>
<style>body { max-width: 40rem; margin: 3rem auto; padding: 0 1rem; font: 1rem/1.6 system-ui, sans-serif; }
pre { padding: .75rem 1rem; background: #8882; overflow: auto; }</style></head><body><main>
<h1>AdloomBot</h1>
<p>A request whose <code>User-Agent</code> begins with <code>AdloomBot</code> and names this address came from the ad
server that runs here. It reads the pages of sites that their publishers have entered here, to find out what each page
is about, so that ads can be chosen by the subject of the page instead of by who reads it.</p>
<ul>
<li>It stores the address, the title and the subject of a page. It follows links within the same site only, fills in
no form, and sends no cookie.</li>
<li>It obeys <code>robots.txt</code> with <code>Crawl-delay</code>, <code>noindex</code> and <code>nofollow</code>, and
waits between two requests. It asks later if a server answers 429 or 503.</li>
<li>It fetches <code>/.well-known/adloom.txt</code>, by which a publisher proves that a site is theirs.</li>
</ul>
<p>To keep it away from a site, write into its <code>robots.txt</code>:</p>
<pre>User-agent: AdloomBot
Disallow: /</pre>
<p>Questions and complaints go to whoever runs this server.</p>
</main></body></html>
"""
ANSWER: Final = FastAnswer(
    encode_head(
        HTTPStatus.OK,
        b"text/html; charset=utf-8",
        (b"cache-control", b"public, max-age=3600"),
        (
            b"content-security-policy",
            b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
        (b"x-content-type-options", b"nosniff"),
    ),
    PAGE.encode(),
)


def build_crawler_routes() -> list[FastRoute]:
    return [FastRoute(b"GET", CRAWLER_PATH.encode(), is_prefix=False, handler=lambda _: ANSWER)]
