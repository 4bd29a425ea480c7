"""The format of the spool's files: records that were written whole are read, and nothing else."""

import struct
from uuid import UUID
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.events.log.spool.format import (
    ENTRY_BYTES_MAX,
    HEADER_BYTES,
    OtherVersionError,
    build_header,
    encode_records,
    is_whole_header,
    read_records,
    read_seed,
)

LIFE = UUID("01932b5c-0000-7000-8000-000000000001")
SEED = read_seed(build_header(LIFE, 1))
ALL = 10_000

# Entries that look like parts of the format, too.
entries = st.lists(
    st.one_of(st.binary(min_size=1, max_size=40), st.just(bytes(9)), st.just(b"\x01\0\0\0" * 4))
)


@given(entries, st.integers(1, 7))
def test_records_are_read_in_batches_of_any_size(written: list[bytes], count_max: int) -> None:
    data = encode_records(written, SEED)

    read: list[bytes] = []
    place = 0
    while place < len(data):
        part = read_records(data, place, SEED, count_max=count_max)
        assert (part.damaged, part.unreadable_bytes) == (0, 0)
        assert len(part.entries) <= count_max
        read += part.entries
        place = part.end

    assert read == written


@given(entries.filter(bool), st.data())
def test_whole_records_of_a_truncated_file_are_read(written: list[bytes], data: st.DataObject) -> None:
    whole = encode_records(written, SEED)
    cut = data.draw(st.integers(0, len(whole) - 1))
    zeros = data.draw(st.integers(0, 20))

    left = whole[:cut] + bytes(zeros)  # Which may be just what was cut off.
    part = read_records(left, 0, SEED, count_max=ALL)

    kept = 0
    while kept < len(written) and left.startswith(encode_records(written[: kept + 1], SEED)):
        kept += 1
    assert part.entries == written[:kept]
    assert part.damaged == 0
    assert part.unreadable_bytes == len(left) - len(encode_records(written[:kept], SEED))


@given(entries.filter(bool), st.data())
def test_damage_loses_only_the_records_that_it_hits(written: list[bytes], data: st.DataObject) -> None:
    before = encode_records(written, SEED)
    start = data.draw(st.integers(0, len(before) - 1))
    end = data.draw(st.integers(start + 1, len(before)))
    noise = data.draw(st.binary(min_size=end - start, max_size=end - start))
    whole = before[:start] + noise + before[end:]

    part = read_records(whole, 0, SEED, count_max=ALL)

    untouched: list[bytes] = []
    place = 0
    for entry in written:
        after = place + len(encode_records([entry], SEED))
        if whole[place:after] == before[place:after]:
            untouched.append(entry)
        place = after
    assert part.entries == untouched
    assert part.end == len(whole)
    assert (part.damaged > 0 or part.unreadable_bytes > 0) == (len(untouched) < len(written))


def test_a_record_inside_a_damaged_entry_is_not_read_as_one() -> None:
    of_another_file = encode_records([b"forged"], read_seed(build_header(LIFE, 2)))
    data = bytearray(encode_records([b"x" + of_another_file, b"after"], SEED))
    data[8] ^= 1

    part = read_records(bytes(data), 0, SEED, count_max=ALL)

    assert (part.entries, part.damaged) == ([b"after"], 1)


@pytest.mark.parametrize("entry", [b"", bytes(ENTRY_BYTES_MAX + 1)])
def test_an_empty_or_too_large_entry_is_not_written(entry: bytes) -> None:
    with pytest.raises(AssertionError):
        encode_records([entry], SEED)


def test_the_largest_entry_is_found_after_damage() -> None:
    data = b"?" + encode_records([bytes(ENTRY_BYTES_MAX)], SEED)

    part = read_records(data, 0, SEED, count_max=ALL)

    assert [len(entry) for entry in part.entries] == [ENTRY_BYTES_MAX]
    assert part.damaged == 1


def test_a_damaged_or_truncated_header_is_not_whole() -> None:
    head = build_header(LIFE, 7)

    assert len(head) == HEADER_BYTES
    assert is_whole_header(head + b"records")
    for place in range(HEADER_BYTES):
        damaged = bytearray(head)
        damaged[place] ^= 1
        assert not is_whole_header(bytes(damaged))
        assert not is_whole_header(head[:place])


def test_a_header_of_another_version_raises() -> None:
    head = build_header(LIFE, 7)
    newer = head[:8] + struct.pack("<I", 2) + head[12:-4]

    with pytest.raises(OtherVersionError):
        is_whole_header(newer + struct.pack("<I", crc32(newer)))
