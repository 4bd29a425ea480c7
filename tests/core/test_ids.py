"""Identifiers: UUIDv7, later ones after earlier ones, on both ways to make them."""

from uuid import UUID

from adloom.core.ids import SystemIds


def test_new_ids_are_version_7_and_sort_by_age() -> None:
    made = [SystemIds().new() for _ in range(1_000)]

    assert {one.version for one in made} == {7}
    assert made == sorted(made)
    assert len(set(made)) == 1_000


def test_a_written_id_is_the_same_kind_of_id() -> None:
    written = SystemIds().new_opaque()

    assert UUID(str(written)).version == 7
    assert UUID(str(written)).bytes == written.bytes
