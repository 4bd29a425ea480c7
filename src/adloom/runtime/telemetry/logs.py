"""Logs: events with fields on standard error, from our code and from libraries alike.

Pretty on a terminal, one JSON object a line elsewhere. What our code filters out costs one empty call.
uvicorn has to be started with `log_config=None`, or it puts its own handlers back.
"""

import json
import logging
import re
import sys
from collections.abc import Iterable, Mapping
from math import isfinite
from types import TracebackType
from typing import Final, TextIO, cast

import msgspec
import structlog
from structlog.dev import Column, ConsoleRenderer, KeyValueColumnFormatter, plain_traceback
from structlog.processors import ExceptionRenderer
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor, WrappedLogger

from adloom.core.errors import find_command_error
from adloom.runtime.settings import Telemetry

REDACTED: Final = "[redacted]"
DEPTH_MAX = 5  # Deeper than this a value is only named: a log line is no place for a tree.
FRAMES_MAX = 20
SECRET_KEY = re.compile(r"passw|secret|token|authorization|cookie|api_?key|credential", re.IGNORECASE)
# A connection string or a header is often part of a longer text, such as the message of an error.
URL_PASSWORD = re.compile(r"(://[^\s:/@]*:)[^\s/]+@")
BEARER = re.compile(r"\b(Bearer|Basic) +[\w.~+/=-]+", re.IGNORECASE)
UVICORN_LOGGERS = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")


def configure_logs(telemetry: Telemetry, stream: TextIO | None = None) -> None:
    """Send the logs of this process to standard error; call it once, first in an entrypoint."""
    output: TextIO = stream or sys.stderr
    level = logging.getLevelNamesMapping()[telemetry.log_level.upper()]
    renderers = _list_renderers(telemetry, output)
    context = _list_context(telemetry.process)
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *context, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(output),
        cache_logger_on_first_use=True,
    )
    _configure_libraries(level, output, context, renderers)
    sys.excepthook = _log_uncaught


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Hide secrets, and reduce values to what every renderer can write."""
    return {key: _clean(key, value, DEPTH_MAX) for key, value in event.items()}


def _list_context(process: str) -> list[Processor]:
    def add_process(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["process"] = process
        return event

    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    return [stamp, structlog.processors.add_log_level, add_process]


def _list_renderers(telemetry: Telemetry, stream: TextIO) -> list[Processor]:
    is_pretty = telemetry.log_format == "console" or (telemetry.log_format == "auto" and stream.isatty())
    if is_pretty:
        return [structlog.processors.format_exc_info, redact, _make_console(has_colors=stream.isatty())]
    # Local variables of the frames are left out: they hold passwords under any name.
    transform = ExceptionDictTransformer(show_locals=False, max_frames=FRAMES_MAX)
    return [ExceptionRenderer(transform), redact, _write_json]


def _write_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    # Escaped to ASCII, so that not even half a surrogate out of a header breaks the line.
    first = {key: event.pop(key) for key in ("timestamp", "level", "process", "event") if key in event}
    return json.dumps({**first, **event})


def _make_console(*, has_colors: bool) -> ConsoleRenderer:
    styles = ConsoleRenderer.get_default_column_styles(colors=has_colors)

    def column(style: str, width: int = 0) -> KeyValueColumnFormatter:
        return KeyValueColumnFormatter(
            key_style=None, value_style=style, reset_style=styles.reset, value_repr=str, width=width
        )

    rest = KeyValueColumnFormatter(
        key_style=styles.kv_key,
        value_style=styles.kv_value,
        reset_style=styles.reset,
        value_repr=_write_readable,
    )
    return ConsoleRenderer(
        columns=[
            Column("timestamp", column(styles.timestamp)),
            Column("level", column(styles.level_info, width=8)),
            Column("process", column(styles.logger_name, width=10)),
            Column("event", column(styles.bright, width=28)),
            Column("", rest),
        ],
        exception_formatter=plain_traceback,
    )


def _write_readable(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and text and " " not in text else repr(value)


def _configure_libraries(
    level: int, stream: TextIO, context: Iterable[Processor], renderers: Iterable[Processor]
) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*context, structlog.stdlib.add_logger_name, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _flatten_extra,
                *renderers,
            ],
        )
    )
    # Library messages below a warning are for debugging: our own code logs one line per unit of work.
    is_debugging = level <= logging.DEBUG
    logging.basicConfig(
        handlers=[handler], level=level if is_debugging else max(level, logging.WARNING), force=True
    )
    for name in UVICORN_LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    logging.captureWarnings(capture=True)


def _flatten_extra(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    # uvicorn gives each message a second time, with colours.
    event.pop("color_message", None)
    return event


def _log_uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, Exception):
        sys.__excepthook__(kind, error, traceback)
        return
    log: structlog.stdlib.BoundLogger = structlog.get_logger()
    if (known := find_command_error(error)) is not None:
        log.critical("process_failed", reason=str(known))
    else:
        log.critical("process_failed", exc_info=error)


def _clean(key: str, value: object, depth: int) -> object:
    if SECRET_KEY.search(key) and isinstance(value, str | bytes):
        return REDACTED
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if isfinite(value) else str(value)
        case str():
            return _hide_secrets(value)
        case bytes():
            return _hide_secrets(value.decode(errors="backslashreplace"))
        case _:
            return _clean_nested(key, value, depth)


def _clean_nested(key: str, value: object, depth: int) -> object:
    if depth == 0:
        return type(value).__name__
    match value:
        case Mapping():
            entries = cast("Mapping[object, object]", value)
            return {str(name): _clean(str(name), inner, depth - 1) for name, inner in entries.items()}
        case list() | tuple() | set() | frozenset():
            items = cast("Iterable[object]", value)
            return [_clean(key, item, depth - 1) for item in items]
        case msgspec.Struct():
            return _clean_nested(key, msgspec.structs.asdict(value), depth)
        case _:
            return _hide_secrets(str(value))


def _hide_secrets(text: str) -> str:
    if "://" in text:
        text = URL_PASSWORD.sub(rf"\1{REDACTED}@", text)
    return BEARER.sub(rf"\1 {REDACTED}", text)
