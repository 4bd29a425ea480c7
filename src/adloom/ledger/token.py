"""The tracking token of an offer: what was offered, where and when, signed so that nobody can make one up.

87 bytes, which are 116 characters of base64url without padding and without a spare bit: a token
has exactly one spelling, so a changed character is always a changed token.

    version 1 · key id 1 · issued at 4 (seconds) · request id 16 · slot 1 ·
    banner, placement, campaign 48 · tag 16 (BLAKE2b, keyed, over all before it)

Signing is on the path of every offer. So the 48 bytes of a candidate's ids are packed once, when
the index is built (`offer_ids`), and the keyed hash is started once and copied.
"""

import binascii
import struct
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from hmac import compare_digest
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.errors import ForbiddenError
from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId

TOKEN_VERSION: Final = 1
TOKEN_LIFETIME: Final = timedelta(minutes=30)
TOKEN_CHARACTERS: Final = 116
SLOT_MAX: Final = 255

_TAG_BYTES: Final = 16
_KEY_BYTES: Final = 32
_FIELDS: Final = struct.Struct(">BBI16sB48s")
_IDS: Final = struct.Struct(">16s16s16s")
_pack = _FIELDS.pack
_to_base64 = binascii.b2a_base64
_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
# `+` and `/` become characters that base64 has not, else a token would have a second spelling.
_FROM_URL: Final = bytes.maketrans(b"-_+/", b"+/!!")


class OfferToken(msgspec.Struct, frozen=True, kw_only=True):
    """What a genuine token says; an expired one is still genuine."""

    request_id: RequestId
    slot: int
    banner_id: BannerId
    placement_id: PlacementId
    campaign_id: CampaignId
    issued_at: datetime
    is_expired: bool


class TrackingTokenInvalidError(ForbiddenError):
    """A token that we did not sign, or not for this event."""

    code = "TRACKING_TOKEN_INVALID"


class Rejection(StrEnum):
    """Why a text is no token of ours."""

    MALFORMED = "malformed"
    UNKNOWN_KEY = "unknown_key"
    FORGED = "forged"


def offer_ids(banner_id: BannerId, placement_id: PlacementId, campaign_id: CampaignId) -> bytes:
    """Pack what a candidate's tokens have in common, once for all its offers."""
    return _IDS.pack(banner_id.bytes, placement_id.bytes, campaign_id.bytes)


class TokenSigner:
    """Signs offers with one secret."""

    def __init__(self, secret: str) -> None:
        # Whatever the secret's length, the key has the one that the hash wants; the id tells keys
        # apart without numbering them, so rotating means no more than giving the new secret.
        key = blake2b(secret.encode(), digest_size=_KEY_BYTES + 1, person=b"adloom-offer-key").digest()
        self.key_id = key[_KEY_BYTES]
        self._start = blake2b(key=key[:_KEY_BYTES], digest_size=_TAG_BYTES)

    def sign(self, ids: bytes, *, request_id: bytes, issued_at: int, slot: int) -> bytes:
        """Make the token of one offer from its packed ids, its request and the second it was made in."""
        body = _pack(TOKEN_VERSION, self.key_id, issued_at, request_id, slot, ids)
        mac = self._start.copy()
        mac.update(body)
        return _to_base64(body + mac.digest(), newline=False).translate(_TO_URL)

    def is_signed(self, body: bytes, tag: bytes) -> bool:
        """Tell whether this key made the tag; takes the same time whatever the answer."""
        mac = self._start.copy()
        mac.update(body)
        return compare_digest(mac.digest(), tag)


class TokenKeys:
    """The key that signs now, and older ones whose tokens are still believed."""

    def __init__(
        self, secret: str, *, older: Iterable[str] = (), lifetime: timedelta = TOKEN_LIFETIME
    ) -> None:
        self.signer = TokenSigner(secret)
        # Two keys may share an id, one pair in 256; then either may have signed.
        self._believed: dict[int, list[TokenSigner]] = {}
        for signer in (self.signer, *(TokenSigner(one) for one in older)):
            self._believed.setdefault(signer.key_id, []).append(signer)
        self._lifetime = lifetime

    def verify(self, token: bytes, *, now: datetime) -> OfferToken | Rejection:
        """Read a token if one of our keys has signed it."""
        raw = _decoded(token)
        if raw is None or raw[0] != TOKEN_VERSION:
            return Rejection.MALFORMED
        body, tag = raw[: _FIELDS.size], raw[_FIELDS.size :]
        signers = self._believed.get(raw[1])
        if signers is None:
            return Rejection.UNKNOWN_KEY
        for signer in signers:
            if signer.is_signed(body, tag):
                return _read(body, now=now, lifetime=self._lifetime)
        return Rejection.FORGED


def _decoded(token: bytes) -> bytes | None:
    if len(token) != TOKEN_CHARACTERS:
        return None
    try:
        return binascii.a2b_base64(token.translate(_FROM_URL), strict_mode=True)
    except binascii.Error:
        return None


def _read(body: bytes, *, now: datetime, lifetime: timedelta) -> OfferToken:
    _, _, seconds, request_id, slot, ids = _FIELDS.unpack(body)
    banner_id, placement_id, campaign_id = _IDS.unpack(ids)
    issued_at = datetime.fromtimestamp(seconds, UTC)
    return OfferToken(
        request_id=RequestId(UUID(bytes=request_id)),
        slot=slot,
        banner_id=BannerId(UUID(bytes=banner_id)),
        placement_id=PlacementId(UUID(bytes=placement_id)),
        campaign_id=CampaignId(UUID(bytes=campaign_id)),
        issued_at=issued_at,
        is_expired=now - issued_at > lifetime,
    )
