"""`adloom rollup`: recomputes the statistics of some days, with a bar on a terminal and a line a day elsewhere."""

import contextlib
from collections.abc import Callable, Generator, Iterator
from datetime import date, timedelta
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from adloom.core.clock import Clock
from adloom.runtime.postgres import POSTGRES_AWAY, open_pool
from adloom.runtime.schema import DatabaseError, describe_database
from adloom.stats.rollup import RolledDay, Rollup, RollupRefusedError, refuse_dropped

DAYS_MAX: Final = 3_660
POOL_SIZE_MAX: Final = 2
ONE_DAY: Final = timedelta(days=1)

Tell = Callable[[date, float], None]


async def run(database_url: str, first: date, last: date, clock: Clock, console: Console) -> None:
    """Roll up days one after another, both included; each is replaced whole or not at all."""
    days = list(days_of(first, last, today=clock.now().date()))
    try:
        async with open_pool(database_url, size_max=POOL_SIZE_MAX) as pool:
            await refuse_dropped(pool, first, last)
            rollup = Rollup(pool, clock)
            with _show_progress(console, days) as tell:
                for day in days:
                    tell(day, 0.0)
                    rolled = await rollup.roll_up(day, on_progress=lambda share, day=day: tell(day, share))
                    assert rolled is not None, "asked for without conditions"
                    console.print(_line(rolled), highlight=False)
    except POSTGRES_AWAY as error:
        raise DatabaseError(
            f"{describe_database(database_url)} cannot be used: {error or type(error).__name__}."
        ) from error


def days_of(first: date, last: date, *, today: date) -> Iterator[date]:
    """List the days of a range, or raise what is wrong with it."""
    if last < first:
        raise RollupRefusedError(f"--to is {last}, which is before --from {first}.")
    # A reader's clock may be a little ahead, around midnight too.
    if last > today + ONE_DAY:
        raise RollupRefusedError(f"--to is {last}, but today is {today} (UTC): nothing has happened then.")
    if (last - first).days >= DAYS_MAX:
        raise RollupRefusedError(f"--from {first} --to {last} are more than {DAYS_MAX} days at once.")
    return (first + number * ONE_DAY for number in range((last - first).days + 1))


@contextlib.contextmanager
def _show_progress(console: Console, days: list[date]) -> Generator[Tell]:
    """Show a progress bar over all days on a terminal."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task("", total=len(days))

    def tell(day: date, share: float) -> None:
        bar.update(task, description=day.isoformat(), completed=(day - days[0]).days + share)

    with bar:
        yield tell


def _line(rolled: RolledDay) -> str:
    return f"{rolled.day}  {rolled.events:>13,} events  {rolled.rows:>9,} rows  {rolled.seconds:>7.2f} s"
