"""The signed tracking token of an offer: what was offered, where, when and at what price.

99 bytes, which are 132 characters of base64url without padding and without a spare bit: a token
has exactly one spelling, so a changed character is always another token.

    version 1 · key id 1 · issued at 4 (seconds) · request id 16 · slot 1 · lease 4 · charge 8 ·
    banner, placement, campaign 48 · tag 16 (BLAKE2b, keyed, over all before it)

The byte of version 4 is 128 and more: what it has beyond is the part of the second, in steps of 8,192 µs. The charge
is in micros; its highest bit says that a click is charged, the next that the offer is void: it was made for a doubtful
sender, and whatever is reported of it does not count. The next 11 bits are the number of the topic under which a
contextual slot was sold. The charge is encrypted: everybody sees tokens, and
what a rival pays is not theirs to read. Encryption is a keyed permutation of the 8 bytes (a Feistel network of four
rounds of BLAKE2b) that is another one for each banner, placement and campaign. So the same ad at the same price has the
same 8 bytes: they show that a price has changed, and nothing else about it.

The price of a contextual slot is another one in nearly every request, so remembering permutations is of no use there.
Its tokens are of version 5, whose byte is 5 and more in the same steps: the charge is masked by 8 bytes of a keyed hash
of the request's id, which no other request has. One hash has the masks of 8 slots.

Older tokens are accepted as long as their offers may last: version 3 has whole seconds, version 2 has the charge in
clear, version 1 has neither lease nor charge (87 bytes, 116 characters).

Signing is on the path of every offer. So the 56 bytes of a candidate's charge and ids are packed once, when it is
first chosen (`pack_terms`), their encrypted form is kept, and the keyed hash is started once and copied. What encrypted
terms say is kept too: reading them is on the path of every event.
"""

# pure

import binascii
import struct
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from hmac import compare_digest
from math import ceil
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.errors import ForbiddenError
from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.events.ingest.price_cipher import ChargeMasks, TermsCipher, keep_terms
from adloom.events.log.event import ChargedBy
from adloom.events.log.offer_entry import NO_ENTRY_PART, EntryPart, EntryTerms, encode_terms
from adloom.taxonomy.topics import find_topic

FIRST_TICK: Final = 128  # Version 4, at the beginning of a second.
TICK_BITS: Final = 13  # Of microseconds that a token leaves out.
TICKS: Final = (10**6 >> TICK_BITS) + 1
FIRST_MASKED_TICK: Final = 5  # Version 5, likewise.
TOKEN_LIFETIME: Final = timedelta(minutes=30)
TOKEN_CHARACTERS: Final = 132
SLOT_MAX: Final = 255

_TAG_BYTES: Final = 16
_ID_BYTES: Final = 16
_SEALED_VERSION: Final = 1
_SEALED_CHARACTERS: Final = 24
_KEY_BYTES: Final = 32
_FIELDS: Final = struct.Struct(">BBI16sBI56s")
_MASKED_FIELDS: Final = struct.Struct(">BBI16sBIQ48s")
_TERMS: Final = struct.Struct(">Q16s16s16s")
_CHARGE: Final = struct.Struct(">Q")
_BY_CLICK: Final = 1 << 63
_IS_VOID: Final = 1 << 62
_TOPIC_SHIFT: Final = 51
_TOPICS_MAX: Final = (1 << 11) - 1
_FLAGS: Final = _BY_CLICK | _IS_VOID | _TOPICS_MAX << _TOPIC_SHIFT
_CLEAR_VERSION: Final = 2  # The last with the charge in clear.
_SECOND: Final = timedelta(seconds=1)
TICK_SECONDS: Final = (1 << TICK_BITS) / 10**6
_FIELDS_1: Final = struct.Struct(">BBI16sB48s")
_FREE: Final = bytes(_CHARGE.size)
VOID_CHARGE: Final = _IS_VOID  # For a doubtful sender.
_VOID: Final = _CHARGE.pack(_IS_VOID)
# MessagePack of an id. Its decoder makes them in a sixth of the time that `UUID` takes.
_ID: Final = b"\xc4\x10%b"
_read_request_id: Final = msgspec.msgpack.Decoder(RequestId).decode
_TICK_VERSIONS: Final = range(FIRST_TICK, FIRST_TICK + TICKS)
_MASKED_VERSIONS: Final = range(FIRST_MASKED_TICK, FIRST_MASKED_TICK + TICKS)
# By the length of the token: the versions that have it, and the length of what is signed.
_BODY_BYTES: Final = {
    TOKEN_CHARACTERS: (frozenset((2, 3, *_MASKED_VERSIONS, *_TICK_VERSIONS)), _FIELDS.size),
    116: (frozenset((1,)), _FIELDS_1.size),
}
_pack, _unpack = _FIELDS.pack, _FIELDS.unpack
_unpack_signed = struct.Struct(">xxI16sBI56s").unpack  # What follows the version and the key's id.
_pack_masked = _MASKED_FIELDS.pack
_to_datetime = datetime.fromtimestamp
_to_base64 = binascii.b2a_base64
_from_base64 = binascii.a2b_base64
_to_number = int.from_bytes
# Looking up a member of an enum calls Python.
_CLICK, _IMPRESSION = ChargedBy.CLICK, ChargedBy.IMPRESSION
_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
# `+` and `/` become characters that base64 does not have, else a token would have a second spelling.
_FROM_URL: Final = bytes.maketrans(b"-_+/", b"+/!!")


class OfferTerms(msgspec.Struct, frozen=True, gc=False):
    """What all tokens of a candidate at one price say."""

    banner_id: BannerId
    placement_id: PlacementId
    campaign_id: CampaignId
    charge: Micros = Micros(0)
    charged_by: ChargedBy = ChargedBy.IMPRESSION
    is_void: bool = False  # Made for a doubtful sender: nothing of it counts.
    topic: int = 0  # The number of the topic that a contextual slot was sold under.
    entry: EntryPart = NO_ENTRY_PART  # What they add to the log's entries of their events.
    ids: tuple[str, str, str] = ("", "", "")  # As reports usually write them, in the order above.


class OfferToken(msgspec.Struct, frozen=True, gc=False):
    """What a token says that we signed, expired or not."""

    request: bytes  # Its id.
    slot: int
    terms: OfferTerms
    second: int  # Since the epoch: when the offer was made.
    tick: int  # Of that second.
    is_expired: bool
    signer: "TokenSigner"  # Who signed it, and sealed its user.
    lease: int = 0  # That the offer was taken from; 0 where its campaign needs none.
    read_at: float = 0.0  # When the token was verified, in seconds since the epoch.

    @property
    def issued_at(self) -> datetime:
        return _find_moment(self.second, self.tick)

    @property
    def request_id(self) -> RequestId:
        return _read_request_id(_ID % self.request)

    @property
    def banner_id(self) -> BannerId:
        return self.terms.banner_id

    @property
    def placement_id(self) -> PlacementId:
        return self.terms.placement_id

    @property
    def campaign_id(self) -> CampaignId:
        return self.terms.campaign_id

    @property
    def charge(self) -> Micros:
        return self.terms.charge

    @property
    def charged_by(self) -> ChargedBy:
        return self.terms.charged_by

    @property
    def is_void(self) -> bool:
        return self.terms.is_void

    @property
    def topic(self) -> int:
        return self.terms.topic


class TrackingTokenInvalidError(ForbiddenError):
    """A token that we did not sign, or not for this event."""

    code = "TRACKING_TOKEN_INVALID"


class TokenRejection(StrEnum):
    """Why a text is not a token of ours."""

    MALFORMED = "malformed"
    UNKNOWN_KEY = "unknown_key"
    FORGED = "forged"


def pack_charge(amount: Micros, charged_by: ChargedBy, topic: int = 0) -> bytes:
    assert amount >> _TOPIC_SHIFT == 0, "no price is as high"
    charge = amount | build_charge(topic)
    return _CHARGE.pack(charge | _BY_CLICK if charged_by is ChargedBy.CLICK else charge)


def build_charge(topic: int) -> int:
    """Return the charge of an impression that was sold under a topic, as far as it is not the amount."""
    assert topic <= _TOPICS_MAX
    return topic << _TOPIC_SHIFT


def pack_terms(pair: bytes, placement_id: bytes, charge: bytes = _FREE) -> bytes:
    """Pack what all tokens of a candidate share; `pair` is its banner's id followed by its campaign's."""
    return b"%b%b%b%b" % (charge, pair[:_ID_BYTES], placement_id, pair[_ID_BYTES:])


def drop_charge(terms: bytes) -> bytes:
    """Return the terms of the same candidate at no price."""
    return _FREE + terms[len(_FREE) :]


def make_charge_void(terms: bytes) -> bytes:
    """Return the terms of the same candidate for a doubtful sender."""
    return _VOID + terms[len(_VOID) :]


class TokenSigner:
    """Signs offers with one secret, their prices encrypted."""

    def __init__(self, secret: str) -> None:
        # The key has the length that the hash wants, whatever the secret's. Its id is derived too, so rotating
        # means no more than setting a new secret.
        key = blake2b(secret.encode(), digest_size=_KEY_BYTES + 1, person=b"adloom-offer-key").digest()
        self.key_id = key[_KEY_BYTES]
        self.start_mac = blake2b(key=key[:_KEY_BYTES], digest_size=_TAG_BYTES).copy
        self._of_users = blake2b(key=key[:_KEY_BYTES], digest_size=_ID_BYTES, person=b"adloom-user")
        self._sealed_prefix = bytes((_SEALED_VERSION, self.key_id))
        cipher = TermsCipher(secret)
        self._encrypt = cipher.encrypt
        self._find_encrypted = cipher.find_encrypted
        self._decrypt = cipher.decrypt
        self._read: dict[bytes, OfferTerms] = {}  # By what tokens have of them.
        self.find_terms = self._read.get
        self._read_clear: dict[bytes, OfferTerms] = {}
        self._find_mask = ChargeMasks(secret).find

    def sign(  # noqa: PLR0913, PLR0917 - all that a token says; on the path of every offer, where names would cost
        self, terms: bytes, request_id: bytes, issued_at: int, slot: int, lease: int = 0, micros: int = 0
    ) -> bytes:
        """Sign an offer that was made in a second, and in a microsecond of it."""
        version = FIRST_TICK + (micros >> TICK_BITS)
        encrypted = self._find_encrypted(terms) or self._encrypt(terms)
        body = _pack(version, self.key_id, issued_at, request_id, slot, lease, encrypted)
        mac = self.start_mac()
        mac.update(body)
        return _to_base64(body + mac.digest(), newline=False).translate(_TO_URL)

    def sign_masked(  # noqa: PLR0913, PLR0917 - as `sign`
        self, charge: int, ids: bytes, request_id: bytes, issued_at: int, slot: int, lease: int, micros: int
    ) -> bytes:
        """Sign the one offer of a slot of a request, at a price that hardly another one has."""
        version = FIRST_MASKED_TICK + (micros >> TICK_BITS)
        body = _pack_masked(
            version,
            self.key_id,
            issued_at,
            request_id,
            slot,
            lease,
            charge ^ self._find_mask(request_id, slot),
            ids,
        )
        mac = self.start_mac()
        mac.update(body)
        return _to_base64(body + mac.digest(), newline=False).translate(_TO_URL)

    def hash_user(self, user_id: bytes, salt: bytes = b"") -> bytes:
        """Hash a user's id so that only we can tell whose it is."""
        mac = self._of_users.copy()
        mac.update(salt + user_id)
        return mac.digest()

    def seal_user(self, request_id: bytes, user_id: bytes) -> bytes:
        """Encrypt the user of an offer for an address, which others may log; `open_user` reads it."""
        mac = self._of_users.copy()
        mac.update(request_id)
        sealed = (_to_number(mac.digest(), "big") ^ _to_number(user_id, "big")).to_bytes(_ID_BYTES, "big")
        return _to_base64(self._sealed_prefix + sealed, newline=False).translate(_TO_URL)

    def open_user(self, sealed: bytes, request_id: bytes) -> UUID | None:
        """Return the user of an offer that we signed; None where there is none, or the text is none of ours."""
        try:
            raw = _from_base64(sealed.translate(_FROM_URL), strict_mode=True)
        except binascii.Error:
            return None
        if len(sealed) != _SEALED_CHARACTERS or not raw.startswith(self._sealed_prefix):
            return None
        return UUID(int=_to_number(self.hash_user(request_id)) ^ _to_number(raw[2:]))

    def read_terms(self, encrypted: bytes) -> OfferTerms:
        return keep_terms(self._read, encrypted, _parse_terms(self._decrypt(encrypted)))

    def read_masked(self, masked: bytes, request_id: bytes, slot: int) -> OfferTerms:
        charge = _to_number(masked[: _CHARGE.size]) ^ self._find_mask(request_id, slot)
        terms = _CHARGE.pack(charge) + masked[_CHARGE.size :]
        return self._read_clear.get(terms) or keep_terms(self._read_clear, terms, _parse_terms(terms))


class TokenKeys:
    """The key that signs now, and older ones whose tokens are still accepted."""

    def __init__(
        self, secret: str, *, older: Iterable[str] = (), lifetime: timedelta = TOKEN_LIFETIME
    ) -> None:
        self.signer = TokenSigner(secret)
        # One pair of keys in 256 shares an id; then either may have signed.
        self._accepted: dict[int, list[TokenSigner]] = {}
        for signer in (self.signer, *(TokenSigner(one) for one in older)):
            self._accepted.setdefault(signer.key_id, []).append(signer)
        self._lifetime = lifetime
        # The second that it is, and when the oldest offers were made that have not expired in all of it.
        self._second_begins = self._second_ends = _to_datetime(0, UTC)
        self._second = 0.0
        self._fresh_since = 0

    def verify(self, token: bytes, now: datetime) -> OfferToken | TokenRejection:
        known = _BODY_BYTES.get(len(token))
        if known is None:
            return TokenRejection.MALFORMED
        try:
            raw = _from_base64(token.translate(_FROM_URL), strict_mode=True)
        except binascii.Error:
            return TokenRejection.MALFORMED
        versions, body_bytes = known
        version = raw[0]
        if version not in versions:
            return TokenRejection.MALFORMED
        signers = self._accepted.get(raw[1])
        if signers is None:
            return TokenRejection.UNKNOWN_KEY
        signed, tag = raw[:body_bytes], raw[body_bytes:]
        for signer in signers:
            mac = signer.start_mac()
            mac.update(signed)
            if compare_digest(mac.digest(), tag):
                break
        else:
            return TokenRejection.FORGED
        if version < FIRST_TICK:
            second, request, slot, lease, terms, tick = _parse_rarer(signed, signer)
        else:
            second, request, slot, lease, packed = _unpack_signed(signed)
            terms, tick = signer.find_terms(packed) or signer.read_terms(packed), version - FIRST_TICK
        if not self._second_begins <= now < self._second_ends:
            self._begin_second(now)
        is_expired = second < self._fresh_since and now - _find_moment(second, tick) > self._lifetime
        read_at = self._second + now.microsecond / 10**6
        return OfferToken(request, slot, terms, second, tick, is_expired, signer, lease, read_at)

    def _begin_second(self, now: datetime) -> None:
        self._second_begins = now.replace(microsecond=0)
        self._second_ends = self._second_begins + _SECOND
        self._second = self._second_begins.timestamp()
        self._fresh_since = ceil((self._second_ends - self._lifetime).timestamp())


def _find_moment(second: int, tick: int) -> datetime:
    return _to_datetime(second + tick * TICK_SECONDS, UTC)


def _parse_rarer(body: bytes, signer: TokenSigner) -> tuple[int, bytes, int, int, OfferTerms, int]:
    """Return second, request, slot, lease, terms and tick of a token of another version than 4."""
    version = body[0]
    if version == 1:
        _, _, second, request, slot, ids = _FIELDS_1.unpack(body)
        return second, request, slot, 0, _parse_terms(_FREE + ids), 0
    _, _, second, request, slot, lease, packed = _unpack(body)
    if version >= FIRST_MASKED_TICK:
        terms = signer.read_masked(packed, request, slot)
        return second, request, slot, lease, terms, version - FIRST_MASKED_TICK
    terms = _parse_terms(packed) if version == _CLEAR_VERSION else signer.read_terms(packed)
    return second, request, slot, lease, terms, 0


def _parse_terms(packed: bytes) -> OfferTerms:
    charge, banner, placement, campaign = _TERMS.unpack(packed)
    terms = OfferTerms(
        banner_id=BannerId(UUID(bytes=banner)),
        placement_id=PlacementId(UUID(bytes=placement)),
        campaign_id=CampaignId(UUID(bytes=campaign)),
        charge=Micros(charge & ~_FLAGS),
        charged_by=_CLICK if charge & _BY_CLICK else _IMPRESSION,
        is_void=bool(charge & _IS_VOID),
        topic=charge >> _TOPIC_SHIFT & _TOPICS_MAX,
    )
    return msgspec.structs.replace(
        terms,
        ids=(str(terms.banner_id), str(terms.placement_id), str(terms.campaign_id)),
        entry=encode_terms(
            EntryTerms(
                terms.banner_id,
                terms.placement_id,
                terms.campaign_id,
                terms.charge,
                terms.charged_by,
                find_topic(terms.topic) if terms.topic else None,
            )
        ),
    )
