"""Sealed texts: readable only with the same secret, for the same owner."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.runtime.encryption import DecryptionError, SecretCipher

SECRET = "a-secret-of-the-tests-that-is-long-enough"
OTHER = "another-secret-of-the-tests-long-enough"


@given(st.text(max_size=300), st.text(max_size=40))
def test_a_sealed_text_can_be_opened(text: str, owner: str) -> None:
    cipher = SecretCipher([SECRET])

    assert cipher.decrypt(cipher.encrypt(text, belongs_to=owner), belongs_to=owner) == text


@given(st.text(min_size=8, max_size=100), st.data())
def test_a_changed_byte_breaks_the_seal(text: str, data: st.DataObject) -> None:
    cipher = SecretCipher([SECRET])
    sealed = bytearray(cipher.encrypt(text, belongs_to="one"))
    place = data.draw(st.integers(0, len(sealed) - 1))
    sealed[place] ^= data.draw(st.integers(1, 255))

    with pytest.raises(DecryptionError):
        cipher.decrypt(bytes(sealed), belongs_to="one")


@pytest.mark.parametrize("length", [0, 1, 12, 13, 28, 29])
def test_truncated_data_breaks_the_seal(length: int) -> None:
    cipher = SecretCipher([SECRET])

    with pytest.raises(DecryptionError):
        cipher.decrypt(cipher.encrypt("a token", belongs_to="one")[:length], belongs_to="one")


def test_a_seal_cannot_be_moved_to_another_owner() -> None:
    cipher = SecretCipher([SECRET])

    with pytest.raises(DecryptionError):
        cipher.decrypt(cipher.encrypt("a token", belongs_to="one"), belongs_to="other")


def test_opening_with_another_secret_fails_and_says_what_to_do() -> None:
    sealed = SecretCipher([SECRET]).encrypt("a token", belongs_to="one")

    with pytest.raises(DecryptionError, match="ADLOOM_SECRET"):
        SecretCipher([OTHER]).decrypt(sealed, belongs_to="one")


def test_a_replaced_secret_still_opens_what_it_sealed() -> None:
    sealed = SecretCipher([SECRET]).encrypt("a token", belongs_to="one")

    assert SecretCipher([OTHER, SECRET]).decrypt(sealed, belongs_to="one") == "a token"


def test_a_text_is_sealed_differently_each_time_and_never_shown() -> None:
    cipher = SecretCipher([SECRET])
    first, second = (cipher.encrypt("a token", belongs_to="one") for _ in range(2))

    assert first != second
    assert b"a token" not in first
    assert SECRET not in repr(cipher)
