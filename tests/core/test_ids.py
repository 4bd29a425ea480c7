"""Identifiers are UUIDv7 and sort by age, from both ways to make them."""

from uuid import UUID

from adloom.core.ids import SystemIds, read_uuid


def test_new_ids_are_version_7_and_sort_by_age() -> None:
    ids = [SystemIds().make() for _ in range(1_000)]

    assert {one.version for one in ids} == {7}
    assert ids == sorted(ids)
    assert len(set(ids)) == 1_000


def test_an_opaque_id_is_a_version_7_id_too() -> None:
    opaque = SystemIds().make_opaque()

    assert UUID(str(opaque)).version == 7
    assert UUID(str(opaque)).bytes == opaque.bytes


def test_an_id_is_read_from_its_bytes_and_its_text() -> None:
    known = SystemIds().make()

    assert read_uuid(known.bytes) == read_uuid(str(known)) == known
    assert type(read_uuid(known.bytes)) is UUID
