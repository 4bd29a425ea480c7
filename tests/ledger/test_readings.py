"""Entries are read once for all projections of a worker."""

import pytest

from adloom.ledger.event import Impression, UnreadableEntryError, encoded
from adloom.ledger.ports import Record
from adloom.ledger.readings import Readings
from adloom.ledger.stream import Entry
from tests.ledger.builders import an_impression


def entry(number: int, impression: Impression | None = None) -> Entry:
    return Entry(f"{number}-0", encoded(impression or an_impression(correlation_id=f"c{number}")))


def test_an_entry_that_comes_again_is_not_read_again() -> None:
    readings = Readings()
    entries = [entry(number) for number in range(1, 6)]

    first, second = readings.records(entries), readings.records(entries[2:])

    assert [record.entry_id for record in first] == ["1-0", "2-0", "3-0", "4-0", "5-0"]
    assert [id(record) for record in second] == [id(record) for record in first[2:]]
    assert readings.read == 5


def test_an_id_that_was_given_again_is_read_again() -> None:
    readings = Readings()
    other = an_impression(correlation_id="another")
    readings.records([entry(1)])

    assert readings.records([entry(1, other)]) == [Record("1-0", other)]
    assert readings.records([entry(1, other)]) == [Record("1-0", other)]
    assert readings.read == 2


@pytest.mark.parametrize("kept_max", [0, 1, 10])
def test_what_was_read_long_ago_is_forgotten(kept_max: int) -> None:
    readings = Readings(kept_max=kept_max)
    for number in range(1, 51):
        readings.records([entry(number)])

    readings.records([entry(1)])

    assert readings.read == 51


def test_what_is_no_event_is_not_kept() -> None:
    readings = Readings()

    with pytest.raises(UnreadableEntryError):
        readings.records([entry(1), Entry("2-0", b"\xc1")])

    assert readings.records([entry(1)]) == [Record("1-0", an_impression(correlation_id="c1"))]
