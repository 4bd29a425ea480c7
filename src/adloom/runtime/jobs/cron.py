"""Moments named by a cron expression: five fields, always in UTC.

In UTC no hour is skipped and none comes twice, so a nightly job runs once on every night.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from cronsim import CronSim, CronSimError

FIELDS: Final = 5
ONE_SECOND: Final = timedelta(seconds=1)
ANY_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)


class CronError(ValueError):
    """The expression names no moments; the message says what is wrong."""


class Cron:
    """A cron expression that can be used."""

    def __init__(self, expression: str) -> None:
        if len(expression.split()) != FIELDS:
            raise CronError(f"it has {len(expression.split())} fields instead of {FIELDS}")
        self.expression: Final = expression
        try:
            self.find_next_after(ANY_MOMENT)
        except CronSimError as error:
            raise CronError(str(error)[:1].lower() + str(error)[1:]) from error
        except StopIteration as error:
            raise CronError("it names a day that never comes") from error

    def __str__(self) -> str:
        return self.expression

    def find_next_after(self, moment: datetime) -> datetime:
        return next(CronSim(self.expression, moment))

    def find_latest_until(self, moment: datetime) -> datetime:
        """Return the last due time until a moment, which may be that moment."""
        return next(CronSim(self.expression, moment.replace(microsecond=0) + ONE_SECOND, reverse=True))
