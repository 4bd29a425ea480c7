"""What lies behind an event: the CPU of the worker, Valkey and PostgreSQL until it is counted, at a bounded rate.

Every event is of an offer of its own: the offers are collected before. What the servers do at rest is a part of it.
So is what they do until the last event is counted, which takes them a second or two: of a load of one second that would
be a tenth. A short load comes first, because a worker that has just begun to charge asks the database about every offer
that is older than that.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from adloom.core.clock import SystemClock
from bench.figures import GoalResult
from bench.load import ERROR_SHARE_MAX, Effort, Sample, Target, run_wrk
from bench.processes import CpuMeter, LoadError, ShowStatus, find_descendants, measure_usage
from bench.product import PRICED, Product, encode_impression
from bench.servers import wait_until_quiet

BEHIND: Final = "behind an event"
BEHIND_PAID: Final = "behind a paid event"
CAMPAIGNS: Final = {BEHIND: 1, BEHIND_PAID: 50}
EVENTS_PER_SECOND: Final = 5_000
MICROS_MAX: Final = 40.0
# With 32, answers that take longer than 6 ms would slow the load down.
CONNECTIONS: Final = 128
COLLECT_SECONDS_MAX: Final = 1.0
FIRST_SECONDS_MAX: Final = 1.0  # The load that is not measured.
COUNTED_SECONDS_MAX: Final = 20.0
# The processes that work on events, by a word of their command lines.
OTHERS: Final = {"worker": "adloom.app.worker", "Valkey": "valkey-server", "PostgreSQL": "postgres"}

# Writes the fields of each offer into a line.
COLLECT: Final = """
local file, taken = io.open(%s, "w"), 0
response = function(status, headers, body)
  local banner, campaign, token = string.match(
    body, '"banners":%%[{"id":"(.-)","campaignId":"(.-)",.-"trackingToken":"(.-)"')
  if not token then return end
  file:write(banner, " ", campaign, " ", token, "\\n")
  taken = taken + 1
  if taken %% 100 == 0 then file:flush() end
end
"""
# Sends each line once, at a rate.
SEND: Final = """
local ffi = require("ffi")
ffi.cdef("typedef struct { long seconds; long nanos; } moment; int clock_gettime(int, moment *);")
local moment = ffi.new("moment")
local function read_millis()
  ffi.C.clock_gettime(1, moment)
  return tonumber(moment.seconds) * 1000 + tonumber(moment.nanos) / 1e6
end
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local bodies, waiting, sent, began_at = {}, 0, 0, nil
for line in io.lines(%s) do bodies[#bodies + 1] = line end
delay = function()
  began_at = began_at or read_millis()
  waiting = waiting + 1
  if waiting > #bodies then return 3600000 end
  return math.max(0, began_at + waiting * 1000 / %d - read_millis())
end
request = function()
  sent = sent + 1
  return wrk.format(nil, nil, nil, bodies[sent])
end
"""


class CostBehind(msgspec.Struct, frozen=True, kw_only=True):
    """The load of events, and the CPU behind one of them, in microseconds by server."""

    sample: Sample
    micros: Mapping[str, float]

    def judge(self) -> GoalResult:
        parts = ", ".join(f"{server} {micros:.1f}" for server, micros in self.micros.items())
        total, rate = self.sample.cpu_micros, self.sample.load.requests / self.sample.load.seconds
        return GoalResult(
            claim=f"{self.sample.target} at most {MICROS_MAX:.0f} µs at {EVENTS_PER_SECOND:,} a second",
            found=f"{total:.1f} at {rate:,.0f} ({parts})",
            is_met=total <= MICROS_MAX,
        )


def measure_behind(product: Product, name: str, seconds: float, say: ShowStatus) -> CostBehind:
    """Report impressions of a new placement: of one campaign for nothing, or of many that pay for them."""
    slug = name.replace(" ", "-")
    terms = PRICED if name == BEHIND_PAID else {}
    product.import_catalog(slug, campaigns=CAMPAIGNS[name], slots=1, terms=terms)
    _report_offers(product, name, slug, min(seconds, FIRST_SECONDS_MAX), say)
    return _report_offers(product, name, slug, seconds, say)


def _report_offers(product: Product, name: str, slug: str, seconds: float, say: ShowStatus) -> CostBehind:
    """Collect offers and report an impression of each."""
    worker = find_descendants(product.pid, OTHERS["worker"])[0]
    with tempfile.TemporaryDirectory(prefix="adloom-behind-") as folder:
        say(f"{name}: collecting offers")
        reports = Path(folder) / "reports"
        count = int(EVENTS_PER_SECOND * seconds) + CONNECTIONS
        offers = Path(folder) / "offers"
        lines = _collect_reports(
            product, f"/banners/serve/{slug}", offers, count, min(seconds, COLLECT_SECONDS_MAX)
        )
        reports.write_text("\n".join(lines), encoding="utf-8")
        asyncio.run(wait_until_quiet(worker))
        say(f"{name}: reporting")
        counted_before = count_impressions(product)
        meters = {server: CpuMeter(find_descendants(product.pid, word)) for server, word in OTHERS.items()}
        script = SEND % (_quote(reports), EVENTS_PER_SECOND)
        target = Target(name=name, port=product.port, path="/banners/events/impression", script=script)
        load = run_wrk(target, Effort(connections=CONNECTIONS, seconds=seconds, serial_prefix=""))
    ends_at = time.monotonic() + COUNTED_SECONDS_MAX
    while True:  # A worker that waits for a busy disk is quiet too.
        asyncio.run(wait_until_quiet(worker))
        spent = {server: meter.read_seconds() for server, meter in meters.items()}
        counted = count_impressions(product) - counted_before
        if counted >= load.requests - load.errors or time.monotonic() > ends_at:
            break
    if load.errors > load.requests * ERROR_SHARE_MAX or counted < load.requests - load.errors:
        raise LoadError(f"Of {load.requests} events {load.errors} were refused and {counted} counted.")
    return CostBehind(
        sample=Sample(
            target=name,
            load=load,
            cpu_seconds=sum(spent.values()),
            resident_bytes=measure_usage([worker]).resident_bytes,
        ),
        micros={server: each / load.requests * 1e6 for server, each in spent.items()},
    )


def count_impressions(product: Product) -> int:
    # If midnight passes meanwhile, run the bench again.
    day = SystemClock().now().date()
    return product.ask_control(f"/admin/stats/banners?from={day}&to={day}")["totals"]["impressions"]


def _collect_reports(product: Product, path: str, file: Path, count: int, seconds: float) -> Iterator[str]:
    """Ask for so many offers; yield the reports of their impressions."""
    report = msgspec.json.decode(encode_impression(product.wait_until_served(path)), type=dict[str, str])
    target = Target(name="offers", port=product.port, path=path, script=COLLECT % _quote(file))
    offers: list[str] = []
    while len(offers) < count:
        run_wrk(target, Effort(connections=CONNECTIONS, seconds=seconds, serial_prefix=""))
        # wrk ends without writing what it has in memory, so the last line may be cut.
        offers += file.read_text(encoding="utf-8").split("\n")[:-1]
    for offer in offers[:count]:
        report["bannerId"], report["campaignId"], report["trackingToken"] = offer.split(" ")
        yield msgspec.json.encode(report).decode()


def _quote(file: Path) -> str:
    return msgspec.json.encode(str(file)).decode()  # A JSON string is a Lua string too.
