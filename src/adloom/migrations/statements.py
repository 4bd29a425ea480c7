"""Run a block of SQL: the driver prepares what it runs, and prepares one statement at a time."""

from alembic import op


def run(*blocks: str) -> None:
    """Run every statement of every block; each ends with a semicolon at the end of its line."""
    for block in blocks:
        for statement in block.split(";\n"):
            if statement.strip():
                op.execute(statement)
