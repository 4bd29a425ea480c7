"""What a person sees who opens the control plane in a browser: what this is, and where to go from here."""

import base64
import hashlib
from html import escape

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from adloom import VERSION

STYLE = """
:root { color-scheme: light dark; --ink: #2b2622; --paper: #fbf8f4; --quiet: #6b6159; --line: #e3dbd2; --mark: #a8481f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eee7df; --paper: #1e1b18; --quiet: #a3978c; --line: #3a342f; --mark: #e58a5c; }
}
body { margin: 0; font: 17px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
main { max-width: 44rem; margin: 0 auto; padding: 3rem 1.25rem; }
h1 { margin: 0; font: 700 2rem/1.2 Georgia, serif; } h2 { margin: 2rem 0 .5rem; font-size: 1rem; }
p { margin: .5rem 0; } .quiet { color: var(--quiet); } a { color: var(--mark); }
pre { margin: .5rem 0; padding: .75rem 1rem; border: 1px solid var(--line); border-radius: .5rem; overflow-x: auto; }
code { font: .875rem/1.5 ui-monospace, monospace; }
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Adloom: the control plane</title><style>{style}</style></head>
<body><main><h1>Adloom</h1>
<p class="quiet">Version {version}, the control plane.</p>
<p>This is where people and programs decide which ads are shown. It is an API: it speaks JSON, and what is
under <code>/admin</code> needs a token. The pages of your readers ask another listener, delivery, which needs none.</p>
<h2>Get a token</h2>
<p>On the machine that Adloom runs on:</p>
<pre><code>uv run adloom token --role admin</code></pre>
<p>From anywhere, with the e-mail address and the password that the first start has printed:</p>
<pre><code>curl -s -X POST {public_url}/auth/login \\
  -H 'Content-Type: application/json' \\
  -d '{{"email": "admin@adloom.local", "password": "…"}}'</code></pre>
<h2>Use it</h2>
<pre><code>curl -s {public_url}/admin/campaigns \\
  -H "Authorization: Bearer $TOKEN"</code></pre>
<p><a href="/openapi.json">/openapi.json</a> describes every route of both listeners.
<a href="/health/ready">/health/ready</a> tells how this one is doing.
The README's «Your first ad» takes you from here to an ad on a page.</p>
</main></body></html>
"""

# Nothing runs and nothing is loaded; the style is known by its hash.
POLICY = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

router = APIRouter()


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def front(request: Request) -> HTMLResponse:
    """Show the way."""
    page = PAGE.format(style=STYLE, version=VERSION, public_url=escape(request.app.state.public_url))
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"})
