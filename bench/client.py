"""The built-in load generator: raw sockets that stay open, in a process of its own.

It takes more from the machine than wrk does, but it is always there.
"""

import asyncio
import subprocess
import sys
import time

import msgspec
import uvloop

from bench.load import (
    BROWSER_HEADERS,
    KIND,
    SERIAL,
    USER,
    USER_BEGINS,
    USERS,
    Effort,
    Load,
    LoadError,
    Target,
    parts_of,
)
from bench.pinning import pin_to_last_cpu

GRACE_SECONDS = 15.0
HEAD_END = b"\r\n\r\n"
LENGTH = b"\r\ncontent-length:"
STATUS_AT = slice(9, 12)  # behind `HTTP/1.1 `


class Order(msgspec.Struct, frozen=True):
    """What the process of the client is told on its standard input."""

    target: Target
    effort: Effort


def load_by_client(target: Target, effort: Effort) -> Load:
    """Run the built-in client once, as a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.client"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pin_to_last_cpu(process.pid)
    try:
        order = msgspec.json.encode(Order(target, effort))
        output, errors = process.communicate(order, timeout=effort.seconds + GRACE_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise LoadError("The built-in client did not come to an end.") from error
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise LoadError(f"The built-in client failed:\n{errors.decode(errors='replace').strip()}")
    return msgspec.json.decode(output, type=Load)


async def loaded(target: Target, effort: Effort) -> Load:
    """Keep all connections busy until the time is over, each with one request at a time."""
    requests = Requests(target, effort.serial_prefix)
    tally = Tally()
    started = time.perf_counter()
    ends_at = started + effort.seconds
    async with asyncio.TaskGroup() as group:
        for _ in range(effort.connections):
            group.create_task(_keep_asking(target.port, requests, tally, ends_at))
    return tally.as_load(time.perf_counter() - started)


class Requests:
    """The bytes of each request to a target."""

    def __init__(self, target: Target, serial_prefix: str) -> None:
        lines = [f"{target.method} {target.path} HTTP/1.1", f"Host: 127.0.0.1:{target.port}"]
        lines += [f"{name}: {value}" for name, value in BROWSER_HEADERS.items()]
        self._body = None if target.body is None else parts_of(target.body)
        if self._body is not None:
            lines.append("Content-Type: application/json")
        self._head = "\r\n".join(lines).encode()
        self._kinds = target.kinds
        self._prefix = serial_prefix
        self._serial = 0

    def following(self) -> bytes:
        """Write the next request; each has a serial of its own."""
        if self._body is None:
            return self._head + HEAD_END
        self._serial += 1
        values = {
            SERIAL: f"{self._prefix}{self._serial}",
            USER: f"{USER_BEGINS}{self._serial % USERS:012}",
            KIND: self._kinds[self._serial % len(self._kinds)],
        }
        body = "".join([values.get(part, part) for part in self._body]).encode()
        return b"%b\r\nContent-Length: %d\r\n\r\n%b" % (self._head, len(body), body)


class Tally:
    """What came back so far."""

    def __init__(self) -> None:
        self.errors = 0
        self.latencies: list[float] = []

    def as_load(self, seconds: float) -> Load:
        """Sum up."""
        in_order = sorted(self.latencies)
        return Load(
            requests=len(in_order),
            errors=self.errors,
            seconds=seconds,
            p50_micros=_percentile(in_order, 50) * 1e6,
            p99_micros=_percentile(in_order, 99) * 1e6,
        )


async def _keep_asking(port: int, requests: Requests, tally: Tally, ends_at: float) -> None:
    while (now := time.perf_counter()) < ends_at:
        try:
            async with asyncio.timeout(ends_at - now + GRACE_SECONDS):
                await _ask_on_one_connection(port, requests, tally, ends_at)
        except (OSError, EOFError, TimeoutError):
            # A server may close a connection whenever it likes; that it did is one error, and we go on.
            tally.errors += 1
            await asyncio.sleep(0.01)


async def _ask_on_one_connection(port: int, requests: Requests, tally: Tally, ends_at: float) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while (sent_at := time.perf_counter()) < ends_at:
            writer.write(requests.following())
            head = await reader.readuntil(HEAD_END)
            await reader.readexactly(_body_bytes(head))
            tally.latencies.append(time.perf_counter() - sent_at)
            if not head[STATUS_AT].startswith(b"2"):
                tally.errors += 1
    finally:
        writer.close()


def _body_bytes(head: bytes) -> int:
    start = head.lower().find(LENGTH)
    if start < 0:
        return 0
    return int(head[start + len(LENGTH) : head.index(b"\r", start + len(LENGTH))])


def _percentile(in_order: list[float], percent: int) -> float:
    if not in_order:
        return 0.0
    return in_order[min(len(in_order) - 1, len(in_order) * percent // 100)]


def main() -> None:
    """Read an order, work it off, write what was seen."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        load = runner.run(loaded(order.target, order.effort))
    sys.stdout.buffer.write(msgspec.json.encode(load))


if __name__ == "__main__":
    main()
