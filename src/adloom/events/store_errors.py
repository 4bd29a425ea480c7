"""What a projection makes of the errors of its database: try the batch again, or give up an event."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import asyncpg

from adloom.core.errors import UnavailableError
from adloom.events.ports import PoisonEntryError
from adloom.runtime.postgres import POSTGRES_AWAY

# The server's refusal of a value, and the driver's.
VALUE_ERRORS: Final = (asyncpg.DataError, ValueError, OverflowError)
ROW_ERRORS: Final = (*VALUE_ERRORS, asyncpg.IntegrityConstraintViolationError)


@contextmanager
def translate_database_errors(
    message: str, *, poison: tuple[type[Exception], ...] = VALUE_ERRORS
) -> Generator[None]:
    """Raise PoisonEntryError for a value that no table takes, and UnavailableError for everything else."""
    try:
        yield
    except poison as error:
        if isinstance(error, asyncpg.CheckViolationError) and error.constraint_name is None:
            # No rule is broken: the day's partition was dropped while we wrote into it.
            raise UnavailableError(f"A day of the tables is not there: {error!r}") from error
        raise PoisonEntryError(repr(error)) from error
    except POSTGRES_AWAY as error:
        raise UnavailableError(f"{message}: {error!r}") from error
