"""The five short drills with real processes: workers, NATS and PostgreSQL are killed and the stream is deleted."""

import pytest

from bench.drills.run import SHORT, run_short_drills

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

PATIENCE = 10.0  # The machine is busy with other tests.


async def test_nothing_is_lost_or_charged_twice_whatever_is_killed() -> None:
    figures, books = await run_short_drills(patience=PATIENCE)

    assert set(figures) == set(SHORT)
    assert books.sent > 0
    assert books.is_right, books
