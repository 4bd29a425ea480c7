"""Secrets of others that we must be able to read again, sealed before they go into the database.

AES-256-GCM, under a key that is derived from a secret of the installation (`ADLOOM_SECRET`). What a secret belongs to is
authenticated with it, so that it cannot be moved to another row. The first byte names this way of sealing, so that it
can be replaced by another while what was sealed before stays readable.
"""

from collections.abc import Sequence
from secrets import token_bytes
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

VERSION: Final = b"\x01"
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12


class DecryptionError(Exception):
    """What was sealed cannot be read: another secret, another owner, or damage. It never says what is inside."""


class SecretCipher:
    """Seals texts under the first of some secrets, and reads what was sealed under any of them."""

    def __init__(self, secrets: Sequence[str]) -> None:
        assert secrets, "nothing can be sealed without a secret"
        assert all(secrets), "an empty secret seals nothing"
        self._ciphers = [AESGCM(_derive_key(secret)) for secret in secrets]

    def __repr__(self) -> str:
        return "SecretCipher(…)"

    def encrypt(self, text: str, *, belongs_to: str) -> bytes:
        """Encrypt a text; the same text gives different bytes each time."""
        nonce = token_bytes(NONCE_BYTES)
        return VERSION + nonce + self._ciphers[0].encrypt(nonce, text.encode(), belongs_to.encode())

    def decrypt(self, sealed: bytes, *, belongs_to: str) -> str:
        """Decrypt what was encrypted for the same owner, or raise DecryptionError."""
        nonce, body = sealed[len(VERSION) :][:NONCE_BYTES], sealed[len(VERSION) + NONCE_BYTES :]
        if sealed.startswith(VERSION) and len(nonce) == NONCE_BYTES:
            for cipher in self._ciphers:
                try:
                    return cipher.decrypt(nonce, body, belongs_to.encode()).decode()
                except InvalidTag:
                    continue
        raise DecryptionError(
            "The credentials cannot be read: ADLOOM_SECRET is not the one they were sealed with."
            " Add that one to it, or enter the credentials again."
        )


def _derive_key(secret: str) -> bytes:
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=b"adloom sealing").derive(secret.encode())
