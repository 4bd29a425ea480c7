"""A local server with Meta's Insights API: levels, days, cursors, errors, usage headers."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "EAAB-a-token-that-nobody-may-see"


class Scripted:
    """An answer that is sent once, instead of the right one."""

    def __init__(
        self, status: int, error: dict[str, Any] | None = None, *, body: bytes | None = None, **headers: Any
    ) -> None:
        self.status = status
        self.body = body if body is not None else json.dumps({"error": error or {}}).encode()
        self.headers = {name.replace("_", "-"): json.dumps(value) for name, value in headers.items()}


class MetaServer:
    """Meta's rows by level, and its scripted next answers."""

    def __init__(self) -> None:
        self.url = ""
        self.rows: dict[str, list[dict[str, Any]]] = {"campaign": [], "adset": [], "ad": []}
        self.statuses: dict[str, str] = {}
        self.script: list[Scripted] = []
        self.usage: dict[str, Any] = {}
        self.requests: list[dict[str, str]] = []
        self.tokens: list[str] = []
        self.rows_max = 10_000

    def has(self, level: str, external_id: str, day: date, *, status: str = "ACTIVE", **fields: Any) -> None:
        """Add a row to Meta's data."""
        row = {f"{level}_id": external_id, "date_start": str(day), "date_stop": str(day), **fields}
        self.rows[level].append(row)
        self.statuses[external_id] = status

    def answer(self, path: str, query: dict[str, str], token: str) -> tuple[int, dict[str, str], bytes]:
        self.requests.append({"path": path, **query})
        self.tokens.append(token)
        if self.script:
            scripted = self.script.pop(0)
            return scripted.status, scripted.headers, scripted.body
        if token != TOKEN:
            return 400, {}, json.dumps({"error": {"code": 190, "message": f"bad token {token}"}}).encode()
        limit = int(query["limit"])
        if limit > self.rows_max:
            message = "Please reduce the amount of data you're asking for, then retry your request"
            return 500, {}, json.dumps({"error": {"code": 1, "message": message}}).encode()
        wanted = json.loads(query["time_range"])
        assert query["time_increment"] == "1", "rows are of days"
        days = (date.fromisoformat(wanted["since"]), date.fromisoformat(wanted["until"]))
        rows = [
            row
            for row in self.rows[query["level"]]
            if days[0] <= date.fromisoformat(row["date_start"]) <= days[1]
            and self.statuses[row[f"{query['level']}_id"]] in find_statuses(query)
        ]
        start = int(query.get("after", "0"))
        end = start + limit
        paging: dict[str, Any] = {"cursors": {"before": str(start), "after": str(end)}}
        if end < len(rows):
            paging["next"] = f"{self.url}{path}?access_token={token}&after={end}"
        headers = {name: json.dumps(value) for name, value in self.usage.items()}
        return 200, headers, json.dumps({"data": rows[start:end], "paging": paging}).encode()


def find_statuses(query: dict[str, str]) -> list[str]:
    """Return the statuses that are listed: unasked, Meta leaves out what was deleted or archived."""
    if "filtering" not in query:
        return ["ACTIVE", "PAUSED"]
    (one,) = json.loads(query["filtering"])
    assert (one["field"], one["operator"]) == (f"{query['level']}.effective_status", "IN")
    return one["value"]


@contextmanager
def running_meta() -> Generator[MetaServer]:
    meta = MetaServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            status, headers, body = meta.answer(parts.path, dict(parse_qsl(parts.query)), token)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    meta.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield meta
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def days(first: date, count: int) -> list[date]:
    return [first + timedelta(days=number) for number in range(count)]
