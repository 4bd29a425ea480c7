"""Load from wrk, where it is installed: it costs the machine least."""

import contextlib
import json
import math
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import msgspec

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
REPORT_MARK = "adloom-bench "
# wrk's own report rounds; its `done` hook knows the figures themselves.
REPORT = """
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\\nadloom-bench {"requests":%d,"errors":%d,"seconds":%.6f,"p50_micros":%.1f,"p99_micros":%.1f}\\n',
    summary.requests, errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    summary.duration / 1e6, latency:percentile(50), latency:percentile(99)))
end
"""
# Bodies of one length have the same head: to format one for each took wrk a fifth more CPU.
POSTS = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local serial, kinds, heads = 0, {%s}, {}
request = function()
  serial = serial + 1
  local body = table.concat({%s})
  if not heads[#body] then
    heads[#body] = string.sub(wrk.format(nil, nil, nil, body), 1, -#body - 1)
  end
  return heads[#body] .. body
end
"""


def find_wrk() -> str | None:
    """Look for wrk on the path."""
    return shutil.which("wrk")


def load_by_wrk(program: str, target: Target, effort: Effort) -> Load:
    """Run wrk once, on one thread."""
    with tempfile.TemporaryDirectory(prefix="adloom-wrk-") as folder:
        script = Path(folder) / "load.lua"
        script.write_text(script_for(target, effort), encoding="utf-8")
        process = subprocess.Popen(  # noqa: S603 - wrk from the path, our own words
            command(program, target, effort, script),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        pin_to_last_cpu(process.pid)
        return _report_of(process, effort.seconds)


def script_for(target: Target, effort: Effort) -> str:
    """Write what wrk needs to know beyond its command line."""
    if target.body is None:
        return REPORT
    values = {
        SERIAL: f"{_quoted(effort.serial_prefix)} .. serial",
        USER: f'{_quoted(USER_BEGINS)} .. string.format("%012d", serial % {USERS})',
        KIND: f"kinds[serial % {len(target.kinds)} + 1]",
    }
    parts = ", ".join(values.get(part) or _quoted(part) for part in parts_of(target.body))
    return POSTS % (", ".join(map(_quoted, target.kinds)), parts) + REPORT


def command(program: str, target: Target, effort: Effort, script: Path) -> list[str]:
    """Spell out the command line of wrk."""
    headers = [word for name, value in BROWSER_HEADERS.items() for word in ("-H", f"{name}: {value}")]
    whole_seconds = math.ceil(effort.seconds)
    load = ["-t", "1", "-c", str(effort.connections), "-d", f"{whole_seconds}s", "--timeout", "5s"]
    return [program, *load, *headers, "-s", str(script), f"http://127.0.0.1:{target.port}{target.path}"]


def parsed(output: str) -> Load:
    """Find our line in what wrk wrote."""
    for line in output.splitlines():
        if line.startswith(REPORT_MARK):
            return msgspec.json.decode(line.removeprefix(REPORT_MARK), type=Load)
    raise LoadError(f"wrk reported nothing:\n{output.strip()}")


def _quoted(text: str) -> str:
    # A JSON string is a Lua string too, as long as it needs no escape by number.
    return json.dumps(text, ensure_ascii=False)


def _report_of(process: subprocess.Popen[str], seconds: float) -> Load:
    try:
        output = _output_of(process, seconds)
    except subprocess.TimeoutExpired as error:
        raise LoadError("wrk did not come to an end.") from error
    finally:
        process.kill()
        process.wait()
    return parsed(output)


def _output_of(process: subprocess.Popen[str], seconds: float) -> str:
    if not seconds.is_integer():
        # wrk takes whole seconds only, but ends and reports when it is interrupted.
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=seconds)[0]
        process.send_signal(signal.SIGINT)
    return process.communicate(timeout=seconds + GRACE_SECONDS)[0]
