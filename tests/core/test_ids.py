"""Identifiers are UUIDv7 and sort by age, from both ways to make them."""

from uuid import UUID

from adloom.core.ids import SystemIds


def test_new_ids_are_version_7_and_sort_by_age() -> None:
    ids = [SystemIds().make() for _ in range(1_000)]

    assert {one.version for one in ids} == {7}
    assert ids == sorted(ids)
    assert len(set(ids)) == 1_000


def test_an_opaque_id_is_a_version_7_id_too() -> None:
    opaque = SystemIds().make_opaque()

    assert UUID(str(opaque)).version == 7
    assert UUID(str(opaque)).bytes == opaque.bytes
