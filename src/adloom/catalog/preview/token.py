"""The signed token of a preview link: which banner is shown in which placement, for which account, until when.

69 bytes, which are 92 characters of base64url:

    version 1 · expires at 4 (seconds) · account, banner, placement 48 · tag 16 (BLAKE2b, keyed, over all before it)

The key is derived from the secret that signs offers, under a name of its own: no token of one kind is ever one of the
other. So a preview token cannot report an impression or a click.
"""

# pure

import binascii
import struct
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from hmac import compare_digest
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.errors import ForbiddenError
from adloom.core.ids import BannerId, PlacementId

PREVIEW_LIFETIME: Final = timedelta(hours=24)
PREVIEW_PARAMETER: Final = "adloom-preview"  # Of a page's address; the tag reads it.
PREVIEW_TOKEN_CHARACTERS: Final = 92

_VERSION: Final = 1
_TAG_BYTES: Final = 16
_KEY_BYTES: Final = 32
_FIELDS: Final = struct.Struct(">BI16s16s16s")
_NOBODY: Final = bytes(16)
_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
# `+` and `/` become characters that base64 does not have, else a token would have a second spelling.
_FROM_URL: Final = bytes.maketrans(b"-_+/", b"+/!!")


class PreviewGrant(msgspec.Struct, frozen=True, kw_only=True):
    """What a link shows. `account_id` is who made it, or None for who sees all."""

    banner_id: BannerId
    placement_id: PlacementId
    account_id: UUID | None
    expires_at: datetime


class PreviewLinkInvalidError(ForbiddenError):
    """A link that we did not sign, or that was changed."""

    code = "PREVIEW_LINK_INVALID"


class PreviewLinkExpiredError(ForbiddenError):
    """A link whose time is over."""

    code = "PREVIEW_LINK_EXPIRED"


class PreviewKeys:
    """The key that signs links, and older ones whose links are still accepted."""

    def __init__(self, secret: str, *, older: Iterable[str] = ()) -> None:
        self._starts = [_start_mac(one) for one in (secret, *older)]

    def sign(self, grant: PreviewGrant) -> str:
        account = _NOBODY if grant.account_id is None else grant.account_id.bytes
        second = int(grant.expires_at.timestamp())
        body = _FIELDS.pack(_VERSION, second, account, grant.banner_id.bytes, grant.placement_id.bytes)
        signed = body + _compute_tag(self._starts[0], body)
        return binascii.b2a_base64(signed, newline=False).translate(_TO_URL).decode()

    def verify(self, token: str, *, now: datetime) -> PreviewGrant:
        """Return what a token shows, or raise."""
        body = self._open(token)
        if body is None:
            raise PreviewLinkInvalidError(
                "This preview link was not signed by this installation, or it was changed. Make a new one in the console."
            )
        _, second, account, banner, placement = _FIELDS.unpack(body)
        expires_at = datetime.fromtimestamp(second, UTC)
        if now >= expires_at:
            raise PreviewLinkExpiredError(
                f"This preview link expired at {expires_at:%Y-%m-%d %H:%M} UTC. Make a new one in the console."
            )
        return PreviewGrant(
            banner_id=BannerId(UUID(bytes=banner)),
            placement_id=PlacementId(UUID(bytes=placement)),
            account_id=None if account == _NOBODY else UUID(bytes=account),
            expires_at=expires_at,
        )

    def _open(self, token: str) -> bytes | None:
        if len(token) != PREVIEW_TOKEN_CHARACTERS or not token.isascii():
            return None
        try:
            raw = binascii.a2b_base64(token.encode().translate(_FROM_URL), strict_mode=True)
        except binascii.Error:
            return None
        body, tag = raw[: _FIELDS.size], raw[_FIELDS.size :]
        is_ours = any([compare_digest(_compute_tag(start, body), tag) for start in self._starts])  # noqa: C419 - in constant time
        return body if is_ours and body[0] == _VERSION else None


def _start_mac(secret: str) -> blake2b:
    key = blake2b(secret.encode(), digest_size=_KEY_BYTES, person=b"adloom-preview").digest()
    return blake2b(key=key, digest_size=_TAG_BYTES)


def _compute_tag(start: blake2b, body: bytes) -> bytes:
    mac = start.copy()
    mac.update(body)
    return mac.digest()
