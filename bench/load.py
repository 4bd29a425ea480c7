"""Load on kinds of requests, generated and measured by wrk, in rounds that rotate over the targets."""

import contextlib
import itertools
import json
import math
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.processes import LoadError, ShowStatus, measure_usage, pin_to_last_cpu

# The headers of a browser, for every target: parsing them is part of the cost.
BROWSER_HEADERS: Final = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0 Safari/537.36",
    "Accept": "*/*",
    "Accept-Language": "en-GB,en;q=0.9,de;q=0.8",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Referer": "https://news.example/politics/2026/11/an-article-of-the-day",
    "Origin": "https://news.example",
    "Sec-Fetch-Dest": "empty",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Site": "cross-site",
}
NO_OP: Final = "no-op"  # Targets that others are compared with.
NGINX: Final = "nginx static"
FLOOR: Final = "Python's floor"  # An answer that never changes: `bench.routes.floor`.
SERIAL: Final = "@serial@"  # Placeholder in a body for a value that differs in each request.
USER: Final = "@user@"  # Placeholder for a user id, a different one each time.
USERS: Final = 10_000
# Placeholder, quotes included, for one of the target's `kinds` of visitors, as JSON.
KIND: Final = '"@kind@"'
USER_BEGINS: Final = "0192e4a0-0000-7000-8000-"  # The rest of a user id is a number of twelve digits.

_PLACEHOLDER: Final = re.compile(f"({SERIAL}|{USER}|{KIND})")
ADDRESSES: Final = (
    10_000  # Of clients behind a proxy: few enough to be known, and so many that none meets a bound.
)
GRACE_SECONDS = 15.0
WARM_UP_SECONDS_MAX = 1.0
ERROR_SHARE_MAX = 0.001  # Beyond this we would measure how fast the server rejects requests.
REPORT_MARK = "adloom-bench "
# wrk's own report rounds; its `done` hook has the exact figures.
REPORT = """
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\\nadloom-bench {"requests":%d,"errors":%d,"seconds":%.6f,"p50_micros":%.1f,"p99_micros":%.1f}\\n',
    summary.requests, errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    summary.duration / 1e6, latency:percentile(50), latency:percentile(99)))
end
"""
# Bodies of one length share a head: formatting each took wrk a fifth more CPU.
POSTS = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local serial, kinds, heads = 0, {%s}, {}
request = function()
  serial = serial + 1
  local body = table.concat({%s})
  if not heads[#body] then
    heads[#body] = string.sub(wrk.format(nil, nil, nil, body), 1, -#body - 3)
  end
  return heads[#body] .. forwarded(serial) .. "\\r\\n" .. body
end
"""
# Each request is formatted once.
GETS = """
local serial, paths, made = 0, {%s}, {}
request = function()
  local number = serial %% #paths + 1
  serial = serial + 1
  if not made[number] then
    made[number] = string.sub(wrk.format(nil, paths[number]), 1, -3)
  end
  return made[number] .. forwarded(serial) .. "\\r\\n"
end
"""
# The line in which a proxy names its client: another public address each time, in turn.
FORWARDED = """
local addresses, lines = %d, {}
local forwarded = function(serial)
  if addresses == 0 then return "" end
  local number = serial %% addresses
  if not lines[number] then
    local third, fourth = math.floor(number / 250), number %% 250 + 1
    lines[number] = string.format("X-Forwarded-For: 51.15.%%d.%%d\\r\\n", third, fourth)
  end
  return lines[number]
end
"""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of request to one server."""

    name: str
    port: int
    path: str
    body: str | None = None
    kinds: tuple[str, ...] = ("null",)
    paths: tuple[str, ...] = ()  # Instead of one: asked for in turn.
    addresses: int = 0  # Of clients behind a proxy that names them, in turn; with 0 there is no proxy.
    script: str | None = None  # For wrk, instead of all that.


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How much load, and how long."""

    connections: int
    seconds: float
    serial_prefix: str


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the load generator measured."""

    requests: int
    errors: int
    seconds: float
    p50_micros: float
    p99_micros: float


class BenchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure."""

    seconds: float
    rounds: int
    connections: int
    workers: int
    # Of load, for what lies behind an event: in a shorter one, what comes after the load weighs too much.
    behind_seconds_min: float = 5.0


class BenchSubject(msgspec.Struct, frozen=True, kw_only=True):
    """A target, and the processes that serve it."""

    target: Target
    pids: list[int]


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One round of one target: the client's view, and the server's usage."""

    target: str
    load: Load
    cpu_seconds: float
    resident_bytes: int
    user_seconds: float = 0.0  # Of `cpu_seconds`: the rest is the kernel's.

    @property
    def cpu_micros(self) -> float:
        """CPU of the server a request."""
        return self.cpu_seconds / self.load.requests * 1e6

    @property
    def user_micros(self) -> float:
        return self.user_seconds / self.load.requests * 1e6

    @property
    def requests_per_second(self) -> float:
        return self.load.requests / self.load.seconds


LoadBy = Callable[[Target, Effort], Load]


def find_wrk() -> str:
    program = shutil.which("wrk")
    if program is None:
        raise LoadError("wrk is not installed: `apt-get install wrk`, or your system's way.")
    return program


def run_wrk(target: Target, effort: Effort) -> Load:
    """Run wrk once, on one thread."""
    program = find_wrk()
    with tempfile.TemporaryDirectory(prefix="adloom-wrk-") as folder:
        script = Path(folder) / "load.lua"
        script.write_text(build_script(target, effort), encoding="utf-8")
        process = subprocess.Popen(  # noqa: S603 - wrk from the path, our own arguments
            build_wrk_command(program, target, effort, script),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        pin_to_last_cpu(process.pid)
        return _wait_for_report(process, effort.seconds)


def take_samples(
    subjects: Sequence[BenchSubject], plan: BenchPlan, report: ShowStatus, *, load_by: LoadBy = run_wrk
) -> list[Sample]:
    """Warm up each target, then measure all in rotation, so that noise affects all alike."""
    serials = itertools.count()

    def plan_effort(seconds: float) -> Effort:
        prefix = f"bench-{next(serials)}-"
        return Effort(connections=plan.connections, seconds=seconds, serial_prefix=prefix)

    for subject in subjects:
        report(f"warming up {subject.target.name}")
        load_by(subject.target, plan_effort(min(plan.seconds, WARM_UP_SECONDS_MAX)))
    samples: list[Sample] = []
    for number in range(1, plan.rounds + 1):
        for subject in subjects:
            report(f"round {number} of {plan.rounds}: {subject.target.name}")
            samples.append(take_sample(subject, plan_effort(plan.seconds), load_by))
    return samples


def take_sample(subject: BenchSubject, effort: Effort, load_by: LoadBy = run_wrk) -> Sample:
    before = measure_usage(subject.pids)
    load = load_by(subject.target, effort)
    after = measure_usage(subject.pids)
    if load.requests == 0 or load.errors > load.requests * ERROR_SHARE_MAX:
        raise LoadError(
            f"{subject.target.name}: {load.errors} errors in {load.requests} requests, nothing to measure."
        )
    return Sample(
        target=subject.target.name,
        load=load,
        cpu_seconds=after.cpu_seconds - before.cpu_seconds,
        user_seconds=after.user_seconds - before.user_seconds,
        resident_bytes=after.resident_bytes,
    )


def build_script(target: Target, effort: Effort) -> str:
    if target.script is not None:
        return target.script + REPORT
    forwarded = FORWARDED % target.addresses
    if target.body is None:
        paths = target.paths or ((target.path,) if target.addresses else ())
        return forwarded + GETS % ", ".join(map(_quote, paths)) + REPORT if paths else REPORT
    values = {
        SERIAL: f"{_quote(effort.serial_prefix)} .. serial",
        USER: f'{_quote(USER_BEGINS)} .. string.format("%012d", serial % {USERS})',
        KIND: f"kinds[serial % {len(target.kinds)} + 1]",
    }
    parts = ", ".join(values.get(part) or _quote(part) for part in _PLACEHOLDER.split(target.body))
    return forwarded + POSTS % (", ".join(map(_quote, target.kinds)), parts) + REPORT


def build_wrk_command(program: str, target: Target, effort: Effort, script: Path) -> list[str]:
    headers = [word for name, value in BROWSER_HEADERS.items() for word in ("-H", f"{name}: {value}")]
    whole_seconds = math.ceil(effort.seconds)
    load = ["-t", "1", "-c", str(effort.connections), "-d", f"{whole_seconds}s", "--timeout", "5s"]
    return [program, *load, *headers, "-s", str(script), f"http://127.0.0.1:{target.port}{target.path}"]


def parse_report(output: str) -> Load:
    for line in output.splitlines():
        if line.startswith(REPORT_MARK):
            return msgspec.json.decode(line.removeprefix(REPORT_MARK), type=Load)
    raise LoadError(f"wrk reported nothing:\n{output.strip()}")


def _quote(text: str) -> str:
    # A JSON string is a Lua string too, unless it needs a numeric escape.
    return json.dumps(text, ensure_ascii=False)


def _wait_for_report(process: subprocess.Popen[str], seconds: float) -> Load:
    try:
        output = _wait_for_output(process, seconds)
    except subprocess.TimeoutExpired as error:
        raise LoadError("wrk did not come to an end.") from error
    finally:
        process.kill()
        process.wait()
    return parse_report(output)


def _wait_for_output(process: subprocess.Popen[str], seconds: float) -> str:
    if not seconds.is_integer():
        # wrk takes whole seconds only, but stops and reports when interrupted.
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=seconds)[0]
        process.send_signal(signal.SIGINT)
    return process.communicate(timeout=seconds + GRACE_SECONDS)[0]
