"""The control plane, for tests of its statistics."""

import pytest

from adloom.runtime.postgres import Pool
from tests.stats.event_writer import EventWriter
from tests.support.control import admin, advertiser, control, publisher

__all__ = ["admin", "advertiser", "control", "publisher"]


@pytest.fixture
def writer(pool: Pool) -> EventWriter:
    return EventWriter(pool)
