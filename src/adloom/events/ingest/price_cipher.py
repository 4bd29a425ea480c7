"""Encrypts the prices of tracking tokens, without growing them: see `token`, which signs them too."""

# pure

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, TypeVar

CHARGE_BYTES: Final = 8
# Terms whose encrypted form is kept, each way: about 4 MB. Beyond, all are forgotten and made again (5 µs each).
TERMS_KEPT_MAX: Final = 16_384
_KEY_BYTES: Final = 32
_ROUNDS: Final = 4
_HALF_BYTES: Final = CHARGE_BYTES // 2
_MASKS: Final = struct.Struct(">8Q")  # Of one hash: a slot has the one of its last three bits.
_MASK_BITS: Final = 3
_LAST_MASK: Final = (1 << _MASK_BITS) - 1
_EIGHTS: Final = tuple(bytes((number,)) for number in range(256 >> _MASK_BITS))
_to_number = int.from_bytes

T = TypeVar("T")


class TermsCipher:
    """Encrypts the charge of terms, and remembers that: offers of one candidate have the same terms."""

    def __init__(self, secret: str) -> None:
        key = blake2b(secret.encode(), digest_size=_KEY_BYTES, person=b"adloom-offer-pri").digest()
        self._starts = [
            blake2b(key=key, digest_size=_HALF_BYTES, person=b"round %d" % number)
            for number in range(_ROUNDS)
        ]
        self._encrypted: dict[bytes, bytes] = {}
        self.find_encrypted = self._encrypted.get

    def encrypt(self, terms: bytes) -> bytes:
        known = self.find_encrypted(terms)
        return known or keep_terms(self._encrypted, terms, _permute(self._starts, terms))

    def decrypt(self, encrypted: bytes) -> bytes:
        return _permute(self._starts[::-1], encrypted)


def _permute(rounds: Sequence[blake2b], terms: bytes) -> bytes:
    """Run the rounds over the 8 bytes of the charge; in reverse order they undo themselves."""
    ids = terms[CHARGE_BYTES:]
    left, right = terms[:_HALF_BYTES], terms[_HALF_BYTES:CHARGE_BYTES]
    for start in rounds:
        mixed = start.copy()
        mixed.update(right + ids)
        crossed = _to_number(left) ^ _to_number(mixed.digest())
        left, right = right, crossed.to_bytes(_HALF_BYTES)
    return right + left + ids


def keep_terms(kept: dict[bytes, T], key: bytes, value: T) -> T:
    if len(kept) >= TERMS_KEPT_MAX:
        kept.clear()
    kept[key] = value
    return value


class ChargeMasks:
    """Masks charges by the request and the slot that they are of: each is the only one of its slot."""

    def __init__(self, secret: str) -> None:
        key = blake2b(secret.encode(), digest_size=_KEY_BYTES, person=b"adloom-offer-msk").digest()
        self._start = blake2b(key=key, digest_size=_MASKS.size)
        # The request and the eight slots that the last masks are of.
        self._request, self._eight = b"", 0
        self._masks: tuple[int, ...] = (0,) * (_LAST_MASK + 1)

    def find(self, request_id: bytes, slot: int) -> int:
        """Return what a charge is masked by; the masks of a request's first slots are made together."""
        eight = slot >> _MASK_BITS
        if request_id != self._request or eight != self._eight:
            mac = self._start.copy()
            mac.update(request_id + _EIGHTS[eight])
            self._masks = _MASKS.unpack(mac.digest())
            self._request, self._eight = request_id, eight
        return self._masks[slot & _LAST_MASK]
