"""A table whose writes take long, so that a process can be killed amid them, however slow the test is."""

import contextlib
from collections.abc import AsyncGenerator

from adloom.runtime.postgres import Pool

SLOW = """
    CREATE FUNCTION wait_a_while() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(TG_ARGV[0]::float); RETURN NULL; END $$;
    CREATE TRIGGER wait_a_while AFTER INSERT OR UPDATE ON {table}
        FOR EACH ROW EXECUTE FUNCTION wait_a_while({seconds});
"""


@contextlib.asynccontextmanager
async def slow_writes(pool: Pool, table: str, *, seconds: float) -> AsyncGenerator[None]:
    """Let each row that is written to a table take so long."""
    await pool.execute(SLOW.format(table=table, seconds=seconds))
    try:
        yield
    finally:
        await pool.execute("DROP FUNCTION wait_a_while CASCADE")
