import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import msgspec
import pytest
import structlog

from adloom.runtime.settings import Secret, Services, Telemetry
from adloom.runtime.telemetry.logs import configure_logs
from tests.support.for_each import for_each


def a_telemetry(*, log_format: str = "json", log_level: str = "info") -> Telemetry:
    return Telemetry(
        process="control", log_level=log_level, log_format=log_format, metrics_port=None, otlp_endpoint=None
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Output(io.StringIO):
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


def a_logger() -> structlog.stdlib.BoundLogger:
    return structlog.get_logger()


def fail(message: str, password: str) -> None:
    assert password
    raise ValueError(message)


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level, hook = root.handlers[:], root.level, sys.excepthook
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    sys.excepthook = hook
    logging.captureWarnings(capture=False)
    structlog.configure(**before)


def test_an_event_is_one_json_line_with_process_time_and_level() -> None:
    output = Output()
    configure_logs(a_telemetry(), output)

    a_logger().info("rollup_finished", rows=3, account=UUID(int=1))

    (line,) = output.lines()
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "info",
        "process": "control",
        "event": "rollup_finished",
        "rows": 3,
        "account": str(UUID(int=1)),
    }


def test_events_below_the_level_are_not_written() -> None:
    output = Output()
    configure_logs(a_telemetry(log_level="warning"), output)

    a_logger().info("noise")

    assert output.getvalue() == ""


def test_a_terminal_gets_colours_and_no_json() -> None:
    terminal = Terminal()
    configure_logs(a_telemetry(log_format="auto"), terminal)

    a_logger().info("campaign_activated", title="two words", label=b"x")

    text = terminal.getvalue()
    assert "campaign_activated" in text
    assert "'two words'" in text
    assert "\x1b[" in text
    assert not text.startswith("{")


def test_the_console_format_can_be_forced_without_colours() -> None:
    output = Output()
    configure_logs(a_telemetry(log_format="console"), output)

    a_logger().info("campaign_activated", rows=3)

    assert output.getvalue().endswith("campaign_activated           rows=3\n")
    assert "\x1b[" not in output.getvalue()


def test_a_pipe_gets_json_by_default() -> None:
    output = Output()
    configure_logs(a_telemetry(log_format="auto"), output)

    a_logger().info("started")

    assert output.lines()[0]["event"] == "started"


@pytest.mark.parametrize("name", ["uvicorn.error", "uvicorn.access", "asyncio", "some.library"])
def test_libraries_go_through_the_same_renderer(name: str) -> None:
    output = Output()
    configure_logs(a_telemetry(), output)

    logging.getLogger(name).warning("Invalid %s", "request", extra={"color_message": "x", "path": "/a"})

    (line,) = output.lines()
    assert line["event"] == "Invalid request"
    assert (line["level"], line["process"], line["logger"]) == ("warning", "control", name)
    assert line["path"] == "/a"
    assert "color_message" not in line


def test_libraries_are_quiet_below_a_warning_unless_debugging() -> None:
    output = Output()
    configure_logs(a_telemetry(), output)
    logging.getLogger("uvicorn.error").info("Started server process")
    assert output.getvalue() == ""

    configure_logs(a_telemetry(log_level="debug"), output)
    logging.getLogger("uvicorn.error").info("Started server process")

    assert output.lines()[0]["event"] == "Started server process"


@for_each("log_format", ["json", "console"])
@for_each(
    "fields",
    [
        {"password": "hunter2"},
        {"JWT_SECRET": "hunter2"},
        {"headers": {"Authorization": "hunter2", "cookie": b"hunter2"}},
        {"tokens": ["hunter2"]},
        {"header": "Bearer hunter2"},
        {"database_url": "postgresql://adloom:hunter2@127.0.0.1/adloom"},
        {"redis_url": "redis://:hunter2@127.0.0.1"},
        {
            "settings": Services(
                database_url=Secret("postgres://a:hunter2@h/d"), redis_url=Secret("redis://:hunter2@h")
            )
        },
        {"why": "cannot reach postgresql://adloom:hunter2@127.0.0.1/adloom now"},
    ],
)
def test_secrets_are_hidden(fields: dict[str, Any], log_format: str) -> None:
    output = Output()
    configure_logs(a_telemetry(log_format=log_format), output)

    a_logger().info("looked", **fields)

    assert "hunter2" not in output.getvalue()
    assert "[redacted]" in output.getvalue()


def test_secrets_of_libraries_are_hidden_too() -> None:
    output = Output()
    configure_logs(a_telemetry(), output)

    logging.getLogger("redis").error("lost redis://:hunter2@127.0.0.1")

    assert output.lines()[0]["event"] == "lost redis://:[redacted]@127.0.0.1"


def test_an_exception_is_one_structured_field_without_secrets() -> None:
    output = Output()
    configure_logs(a_telemetry(), output)

    try:
        fail("no way to postgres://adloom:hunter2@h/d", password="hunter2")
    except ValueError:
        a_logger().exception("projection_failed")

    (line,) = output.lines()
    (error,) = line["exception"]
    assert error["exc_type"] == "ValueError"
    assert error["frames"][-1]["name"] == "fail"
    assert "hunter2" not in output.getvalue()


def test_an_exception_of_a_library_is_the_same_field() -> None:
    output = Output()
    configure_logs(a_telemetry(), output)

    try:
        fail("wrong", password="hunter2")
    except ValueError:
        logging.getLogger("some.library").exception("Task failed")

    assert output.lines()[0]["exception"][0]["exc_value"] == "wrong"


def test_any_value_can_be_logged() -> None:
    output = Output()
    configure_logs(a_telemetry(), output)
    endless: list[object] = []
    endless.append(endless)

    a_logger().info("odd", half="\ud800", nan=float("nan"), endless=endless, keys={1: {2: object()}})

    (line,) = output.lines()
    assert line["nan"] == "nan"
    assert line["half"] == "\ud800"


def test_context_variables_are_in_the_line() -> None:
    output = Output()
    configure_logs(a_telemetry(), output)

    with structlog.contextvars.bound_contextvars(request_id="r1"):
        a_logger().info("answered")

    assert output.lines()[0]["request_id"] == "r1"


def test_an_uncaught_exception_is_logged_too() -> None:
    telemetry = msgspec.json.encode(a_telemetry()).decode()
    program = f"""
import msgspec
from adloom.runtime.telemetry.logs import configure_logs
from adloom.runtime.settings import Secret, Telemetry
configure_logs(msgspec.json.decode({telemetry!r}, type=Telemetry))
raise RuntimeError("out of order")
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    line = json.loads(done.stderr)
    assert done.returncode == 1
    assert line["event"] == "process_failed"
    assert line["exception"][0]["exc_value"] == "out of order"


def test_an_uncaught_error_that_the_operator_can_mend_is_a_sentence() -> None:
    telemetry = msgspec.json.encode(a_telemetry()).decode()
    program = f"""
import msgspec
from adloom.core.errors import CommandError
from adloom.runtime.telemetry.logs import configure_logs
from adloom.runtime.settings import Secret, Telemetry
configure_logs(msgspec.json.decode({telemetry!r}, type=Telemetry))
raise ExceptionGroup("of tasks", [ExceptionGroup("of more", [CommandError("Port 1 is in use.")])])
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    line = json.loads(done.stderr)
    assert (line["event"], line["reason"], "exception" in line) == (
        "process_failed",
        "Port 1 is in use.",
        False,
    )
