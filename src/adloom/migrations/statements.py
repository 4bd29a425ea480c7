"""Runs blocks of SQL."""

from typing import Any

from alembic import op

from adloom.runtime.postgres import Connection


def run(*blocks: str) -> None:
    """Run every statement of every block, in one round trip each block: the driver itself prepares none of them."""
    connection = op.get_bind()
    # SQLAlchemy begins a transaction with the first statement that it runs itself.
    connection.exec_driver_sql("SELECT 1")
    adapted: Any = connection.connection.dbapi_connection

    async def execute(driver: Connection) -> None:
        for block in blocks:
            await driver.execute(block)

    adapted.run_async(execute)
