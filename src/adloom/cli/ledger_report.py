"""What `adloom ledger status`, `… dead` and `… topics` print: the state of the log, its dead letters, its topics."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final, cast

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adloom.core.errors import CommandError, UnavailableError, describe_error
from adloom.events.projections.dead_letters import DeadLetter, DeadLetterQueue
from adloom.events.projections.status import LogStatus, LogStatusReader, ProjectionStatus, read_entry_time
from adloom.events.topics.publish import (
    AD_SERVED,
    CLICK_TRACKED,
    CONVERSION_TRACKED,
    IMPRESSION_TRACKED,
    TOPICS,
    read_schema,
)
from adloom.ops.projections import list_projections, read_cursors
from adloom.ops.system import is_letter_id, render_event
from adloom.runtime.postgres import POSTGRES_AWAY, open_pool
from adloom.runtime.valkey import VALKEY_AWAY, open_valkey

REASON_CHARACTERS_MAX: Final = 100
MEGABYTE: Final = 1_000_000

ABOUT: Final[Mapping[str, str]] = {
    IMPRESSION_TRACKED: "an ad was seen",
    CLICK_TRACKED: "an ad was clicked",
    CONVERSION_TRACKED: "a shop reported a conversion",
    AD_SERVED: "an ad was offered, where ADLOOM_SERVED_EVENTS is on",
}


class LedgerCommandError(CommandError):
    """The ledger cannot be read, or has no such letter; the message says which."""


async def show_status(database_url: str, redis_url: str, console: Console) -> None:
    try:
        async with open_pool(database_url, size_max=1) as pool, open_valkey(redis_url) as valkey:
            status = await LogStatusReader(valkey).read(
                await read_cursors(list_projections(pool, valkey), pool)
            )
    except (UnavailableError, *POSTGRES_AWAY) as error:
        raise LedgerCommandError(f"The ledger cannot be looked at: {describe_error(error)}") from error
    console.print(_describe_size(status), highlight=False)
    console.print(_build_table(status.projections))


async def list_dead(redis_url: str, console: Console) -> None:
    async with _open_letters(redis_url) as letters:
        table = _make_table("id", "projection", "entry", "tries", "at", "reason")
        count = 0
        async for letter in _list_all(letters):
            count += 1
            table.add_row(
                letter.id,
                escape(letter.projection),
                letter.entry_id,
                str(letter.tries),
                _format_time(letter.at),
                escape(_shorten(letter.reason)),
            )
    if count:
        console.print(table)
    console.print(f"{count} dead letters" if count else "There are no dead letters.", highlight=False)


async def show_dead(redis_url: str, letter_id: str, console: Console) -> None:
    async with _open_letters(redis_url) as letters:
        letter = await letters.get(_check_id(letter_id))
    if letter is None:
        raise _make_unknown_letter_error(letter_id)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _list_facts(letter):
        table.add_row(name, escape(value))
    console.print(table)


async def retry_dead(redis_url: str, letter_ids: Sequence[str] | None, console: Console) -> None:
    """Retry the named letters, or all."""
    async with _open_letters(redis_url) as letters:
        names = [one.id async for one in _list_all(letters)] if letter_ids is None else list(letter_ids)
        missing = [name for name in names if not await letters.retry(_check_id(name))]
    count = len(names) - len(missing)
    console.print(f"{count} appended to the ledger again; what fails again comes back here.", highlight=False)
    if missing and letter_ids is not None:
        raise _make_unknown_letter_error(*missing)


async def forget_dead(redis_url: str, letter_id: str, console: Console) -> None:
    async with _open_letters(redis_url) as letters:
        if not await letters.delete(_check_id(letter_id)):
            raise _make_unknown_letter_error(letter_id)
    console.print(f"{letter_id} is forgotten: its event is not counted.", highlight=False)


def find_schema(topic: str) -> str:
    if topic not in TOPICS:
        raise LedgerCommandError(f"There is no topic {topic!r}; there are {', '.join(TOPICS)}.")
    return read_schema(topic)


async def report_topics(redis_url: str) -> AsyncGenerator[str]:
    try:
        async with open_valkey(redis_url) as valkey:
            for topic in TOPICS:
                entries: int = await valkey.xlen(topic)
                rows = cast("list[tuple[bytes, object]]", await valkey.xrevrange(topic, count=1))
                more = ""
                if rows:
                    more = f", the last at {read_entry_time(rows[0][0].decode()):%Y-%m-%d %H:%M:%S} UTC"
                elif not await valkey.exists(topic):
                    more = ", published from its first consumer group on"
                yield f"{topic:<27}{entries:>12,} entries{more} ({ABOUT[topic]})"
    except VALKEY_AWAY as error:
        raise LedgerCommandError(f"Valkey does not answer: {error}") from error


@asynccontextmanager
async def _open_letters(redis_url: str) -> AsyncGenerator[DeadLetterQueue]:
    try:
        async with open_valkey(redis_url) as valkey:
            yield DeadLetterQueue(valkey)
    except (UnavailableError, *VALKEY_AWAY) as error:
        raise LedgerCommandError(f"The dead letters cannot be read: {describe_error(error)}") from error


async def _list_all(letters: DeadLetterQueue) -> AsyncGenerator[DeadLetter]:
    page = await letters.list_after()
    while page:
        for letter in page:
            yield letter
        page = await letters.list_after(page[-1].id)


def _check_id(letter_id: str) -> str:
    if not is_letter_id(letter_id):
        raise LedgerCommandError(f"{letter_id!r} is no id of a dead letter; they look like 1794720000000-0.")
    return letter_id


def _make_unknown_letter_error(*letter_ids: str) -> LedgerCommandError:
    return LedgerCommandError(f"There is no dead letter {', '.join(letter_ids)}.")


def _describe_size(status: LogStatus) -> str:
    size = status.size
    if status.oldest is None or status.newest is None:
        return "The ledger is empty."
    return (
        f"{size.entries:,} entries, about {size.memory_bytes / MEGABYTE:,.1f} MB,"
        f" from {_format_time(read_entry_time(status.oldest))} to {_format_time(read_entry_time(status.newest))};"
        f" {size.dead:,} dead letters"
    )


def _build_table(projections: Iterable[ProjectionStatus]) -> Table:
    table = _make_table(
        "projection", "cursor", "behind", "oldest", "owner", "taken", "failing", "tries", "dead"
    )
    for one in projections:
        table.add_row(
            escape(one.name),
            one.cursor,
            f"{one.lag.entries:,}",
            f"{one.lag.seconds:,.1f} s" if one.lag.entries else "",
            escape(one.owner or "nobody"),
            f"{one.taken:,}",
            f"{one.failing:,}",
            f"{one.tries:,}",
            f"{one.dead:,}",
        )
    return table


def _make_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        is_number = column in {"behind", "oldest", "taken", "failing", "tries", "dead"}
        table.add_column(
            column,
            justify="right" if is_number else "left",
            no_wrap=column != "reason",
            overflow="fold" if column == "reason" else "ellipsis",
        )
    return table


def _list_facts(letter: DeadLetter) -> list[tuple[str, str]]:
    return [
        ("id", letter.id),
        ("projection", letter.projection),
        ("entry", f"{letter.entry_id}, made {_format_time(read_entry_time(letter.entry_id))}"),
        ("tries", str(letter.tries)),
        ("given up", _format_time(letter.at)),
        ("reason", letter.reason),
        ("event", render_event(letter)),
    ]


def _shorten(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= REASON_CHARACTERS_MAX else f"{line[: REASON_CHARACTERS_MAX - 1]}…"


def _format_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}Z"
