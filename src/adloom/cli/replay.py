"""`adloom ledger replay`: rebuilds a projection beside the one in use, while everything goes on."""

import contextlib
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec
import structlog
from rich.console import Console

from adloom.app.progress import WorkProgress, show_progress
from adloom.budgets.confirms.projection import CHARGES
from adloom.core.clock import SystemClock, parse_moment
from adloom.core.errors import CommandError, UnavailableError, describe_error
from adloom.events.auction_log.store import AUCTIONS
from adloom.events.conversions.attribute import AttributionRules, build_rules
from adloom.events.ctr.store import LEARNING
from adloom.events.frequency.projection import FREQUENCY
from adloom.events.frequency.rebuild import FrequencyRebuild
from adloom.events.log.event import BEGINNING
from adloom.events.rebuild.log_scanner import LogScanner
from adloom.events.rebuild.rebuild import (
    EventTablesRebuild,
    RebuildRefusedError,
    RebuildReport,
)
from adloom.events.tables.store import EVENT_TABLES
from adloom.runtime.postgres import POSTGRES_AWAY, Pool, open_pool
from adloom.runtime.settings import ConversionSettings
from adloom.runtime.valkey import VALKEY_AWAY, Valkey, open_valkey

POOL_SIZE_MAX: Final = 3
# A day of ten million rows is copied in minutes. The operator can interrupt; the server notices a client that is gone.
STATEMENT_SECONDS_MAX: Final = 24 * 3600.0
FROM_THE_BEGINNING: Final = "beginning"
_ENTRY_ID: Final = re.compile(r"\d{10,}-\d+", re.ASCII)
IMPOSSIBLE: Final = {
    "topics": (
        "The topics cannot be replayed: others have read them, and would get everything twice."
        " What the ledger has can be read from a topic as far back as it reaches."
    ),
    CHARGES: (
        "Charges cannot be replayed: what was charged stays charged, and each offer is charged once."
        " `adloom doctor --money` checks the money of a day."
    ),
    AUCTIONS: (
        "Auctions cannot be replayed: each is recorded once and never corrected,"
        " and what the ledger keeps has no bids."
    ),
    LEARNING: (
        "Learning cannot be replayed: an example that was learned twice would weigh twice."
        " To start from scratch, delete the row of learning_states."
    ),
}


class ReplayError(CommandError):
    """A replay that cannot be done, or ended early; the message says why."""


class ReplayContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay works with; `start` is the least id of the entries that are read again."""

    pool: Pool
    valkey: Valkey
    start: str
    progress: WorkProgress
    attribution: AttributionRules


async def run(  # noqa: PLR0913 - the options of the command
    projection: str,
    start: str,
    *,
    database_url: str,
    redis_url: str,
    console: Console,
    conversions: ConversionSettings | None = None,
) -> None:
    """Replay a projection and print the result."""
    # Warnings go to the standard error stream, not into the bar.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    replay = _find_replay(projection)
    rules = conversions or ConversionSettings()
    began_at = time.perf_counter()
    try:
        async with (
            open_pool(
                database_url, size_max=POOL_SIZE_MAX, command_seconds_max=STATEMENT_SECONDS_MAX
            ) as pool,
            open_valkey(redis_url) as valkey,
        ):
            with show_progress("Replaying", console=console) as progress:
                result = await replay(
                    ReplayContext(
                        pool=pool,
                        valkey=valkey,
                        start=parse_start(start),
                        progress=progress,
                        attribution=build_rules(rules.days, rules.currency),
                    )
                )
    except RebuildRefusedError as error:
        raise ReplayError(str(error)) from error
    except (UnavailableError, *POSTGRES_AWAY, *VALKEY_AWAY) as error:
        raise ReplayError(
            f"The replay has ended early: {describe_error(error)}. It can be begun again at any time."
        ) from error
    console.print(f"{result} It took {time.perf_counter() - began_at:,.1f} s.", highlight=False)


def _find_replay(projection: str) -> Callable[[ReplayContext], Awaitable[str]]:
    if projection in IMPOSSIBLE:
        raise ReplayError(IMPOSSIBLE[projection])
    if projection not in REPLAYS:
        known = ", ".join(sorted(REPLAYS))
        raise ReplayError(f"There is no projection {projection!r} that can be replayed; there are {known}.")
    return REPLAYS[projection]


def parse_start(text: str) -> str:
    """Return the least id of an entry from there on."""
    if text == FROM_THE_BEGINNING:
        return BEGINNING
    if _ENTRY_ID.fullmatch(text):
        return text
    moment: datetime | None = None
    with contextlib.suppress(ValueError):
        moment = parse_moment(text)
    if moment is None or moment.tzinfo is None:
        raise ReplayError(
            f"{text!r} is no place in the ledger. Expected the id of an entry (1794700800000-0), a time with"
            f" its zone (2026-11-15T00:00:00Z), a day of UTC (2026-11-15), or `{FROM_THE_BEGINNING}`."
        )
    return f"{max(0, int(moment.timestamp() * 1000))}-0"


async def _replay_event_tables(context: ReplayContext) -> str:
    rebuild = EventTablesRebuild(
        context.pool,
        LogScanner(context.valkey),
        progress=context.progress,
        attribution=context.attribution,
    )
    return _describe(await rebuild.run(context.start))


async def _replay_frequency(context: ReplayContext) -> str:
    if context.start != BEGINNING:
        raise RebuildRefusedError(
            "frequency is counted from all rows of the event tables: it can only start at the beginning."
        )
    rebuild = FrequencyRebuild(
        context.pool, context.valkey, LogScanner(context.valkey), progress=context.progress
    )
    shown = await rebuild.run(now=SystemClock().now())
    return f"frequency has counted {shown:,} valid impressions of users, and what came meanwhile."


def _describe(rebuilt: RebuildReport) -> str:
    applied = rebuilt.applied
    left_out = f", {rebuilt.left_out:,} left out" if rebuilt.left_out else ""
    dropped = f", {applied.dropped:,} of deleted banners or placements" if applied.dropped else ""
    change = (
        "No figure has changed."
        if rebuilt.days_corrected == 0
        else f"There were {rebuilt.events_before:,} events; {rebuilt.days_corrected:,} days have other figures now."
    )
    return (
        f"event_tables has {rebuilt.events:,} events: {rebuilt.copied:,} copied,"
        f" {applied.counted:,} applied from {rebuilt.first_entry} on"
        f" ({applied.repeated:,} repeated{dropped}{left_out}). {change}"
    )


REPLAYS: Final[Mapping[str, Callable[[ReplayContext], Awaitable[str]]]] = {
    EVENT_TABLES: _replay_event_tables,
    FREQUENCY: _replay_frequency,
}
