"""Secrets of others, sealed: readable with the same secret for the same owner, and in no other way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.runtime.encryption import SealBrokenError, Sealer

SECRET = "a-secret-of-the-tests-that-is-long-enough"
OTHER = "another-secret-of-the-tests-long-enough"


@given(st.text(max_size=300), st.text(max_size=40))
def test_what_was_sealed_can_be_read_again(text: str, owner: str) -> None:
    sealer = Sealer([SECRET])

    assert sealer.unseal(sealer.seal(text, belongs_to=owner), belongs_to=owner) == text


@given(st.text(min_size=8, max_size=100), st.data())
def test_a_changed_byte_breaks_the_seal(text: str, data: st.DataObject) -> None:
    sealer = Sealer([SECRET])
    sealed = bytearray(sealer.seal(text, belongs_to="one"))
    place = data.draw(st.integers(0, len(sealed) - 1))
    sealed[place] ^= data.draw(st.integers(1, 255))

    with pytest.raises(SealBrokenError):
        sealer.unseal(bytes(sealed), belongs_to="one")


@pytest.mark.parametrize("length", [0, 1, 12, 13, 28, 29])
def test_what_is_cut_short_breaks_the_seal(length: int) -> None:
    sealer = Sealer([SECRET])

    with pytest.raises(SealBrokenError):
        sealer.unseal(sealer.seal("a token", belongs_to="one")[:length], belongs_to="one")


def test_a_seal_cannot_be_moved_to_another_owner() -> None:
    sealer = Sealer([SECRET])

    with pytest.raises(SealBrokenError):
        sealer.unseal(sealer.seal("a token", belongs_to="one"), belongs_to="other")


def test_another_secret_reads_nothing_and_says_what_to_do() -> None:
    sealed = Sealer([SECRET]).seal("a token", belongs_to="one")

    with pytest.raises(SealBrokenError, match="ADLOOM_SECRET"):
        Sealer([OTHER]).unseal(sealed, belongs_to="one")


def test_a_secret_that_was_replaced_still_reads_what_it_sealed() -> None:
    sealed = Sealer([SECRET]).seal("a token", belongs_to="one")

    assert Sealer([OTHER, SECRET]).unseal(sealed, belongs_to="one") == "a token"


def test_the_same_text_is_sealed_differently_each_time_and_never_shown() -> None:
    sealer = Sealer([SECRET])
    first, second = (sealer.seal("a token", belongs_to="one") for _ in range(2))

    assert first != second
    assert b"a token" not in first
    assert SECRET not in repr(sealer)
