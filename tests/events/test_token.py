"""Tokens of offers: only the holder of the secret can make one."""

import base64
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.core.money import Micros
from adloom.events.ingest.price_cipher import TERMS_KEPT_MAX, TermsCipher
from adloom.events.ingest.token import (
    SLOT_MAX,
    TICK_BITS,
    TOKEN_CHARACTERS,
    TOKEN_LIFETIME,
    VOID_CHARGE,
    OfferToken,
    TokenKeys,
    TokenRejection,
    TokenSigner,
    build_charge,
    pack_charge,
    pack_terms,
)
from adloom.events.log.event import ChargedBy
from tests.events.builders import BANNER, CAMPAIGN, NOW, PLACEMENT, REQUEST, SECRET, a_token

KEYS = TokenKeys(SECRET)
# Made by the version before this one, with the secret of the tests.
TOKEN_OF_VERSION_1 = b"AWBq-Z7AAYkAAAAAcACAAAAAAAAA4QMBiQAAAABwAIAAAAAAAAALAYkAAAAAcACAAAAAAAAAoQGJAAAAAHAAgAAAAAAAAMEvvNGMWOjnBb_cMHKAixZT"
# Of version 2: lease 7, 0.25 for a click, in clear.
TOKEN_OF_VERSION_2 = b"AmBq-Z7AAYkAAAAAcACAAAAAAAAA4QMAAAAHgAAAAAAD0JABiQAAAABwAIAAAAAAAAALAYkAAAAAcACAAAAAAAAAoQGJAAAAAHAAgAAAAAAAAMEY7ngqDxINoriOvG98x--2"
# Of version 3: the same, with the price encrypted, and whole seconds.
TOKEN_OF_VERSION_3 = b"A2Bq-Z7AAYkAAAAAcACAAAAAAAAA4QMAAAAHoOYmlYUm6y8BiQAAAABwAIAAAAAAAAALAYkAAAAAcACAAAAAAAAAoQGJAAAAAHAAgAAAAAAAAMGsTmG3m6O6DkV_hDXQOPp3"
URL_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def raw(token: bytes) -> bytes:
    return base64.urlsafe_b64decode(token)


@given(
    ids=st.tuples(st.uuids(), st.uuids(), st.uuids()),
    request_id=st.uuids(),
    at=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 10**6 - 1)),
    slot=st.integers(0, SLOT_MAX),
    lease=st.integers(0, 2**32 - 1),
    charge=st.tuples(
        st.integers(0, 2**51 - 1).map(Micros), st.sampled_from(ChargedBy), st.integers(0, 2**11 - 1)
    ),
)
def test_a_token_returns_the_signed_fields(  # noqa: PLR0913, PLR0917 - all that a token says
    ids: tuple[BannerId, PlacementId, CampaignId],
    request_id: BannerId,
    at: tuple[int, int],
    slot: int,
    lease: int,
    charge: tuple[Micros, ChargedBy, int],
) -> None:
    banner, placement, campaign = ids
    second, micros = at
    terms = pack_terms(banner.bytes + campaign.bytes, placement.bytes, pack_charge(*charge))
    number, packed = int.from_bytes(terms[:8], "big"), terms[8:]
    signer = KEYS.signer
    kept = signer.sign(
        terms, request_id=request_id.bytes, issued_at=second, slot=slot, lease=lease, micros=micros
    )
    masked = signer.sign_masked(number, packed, request_id.bytes, second, slot, lease, micros)

    for token in (kept, masked):
        offer = TokenKeys(SECRET).verify(token, now=NOW)

        assert len(token) == TOKEN_CHARACTERS
        assert isinstance(offer, OfferToken)
        assert (offer.banner_id, offer.placement_id, offer.campaign_id) == ids
        assert (offer.request_id, offer.slot, int(offer.issued_at.timestamp())) == (request_id, slot, second)
        # Never later than it was, so that nothing that came after it seems to come too soon.
        assert micros - 2**TICK_BITS < offer.issued_at.microsecond <= micros
        assert not offer.is_void
        assert (offer.lease, (offer.charge, offer.charged_by, offer.topic)) == (lease, charge)


@given(
    requests=st.tuples(st.uuids(), st.uuids()),
    slot=st.integers(0, SLOT_MAX),
    charge=st.integers(0, 2**51 - 1),
    place=st.integers(0, 99 * 8 - 1),
)
def test_a_masked_price_is_another_in_each_slot_and_request(
    requests: tuple[UUID, UUID], slot: int, charge: int, place: int
) -> None:
    def sign(request: UUID, of_slot: int) -> bytes:
        return raw(KEYS.signer.sign_masked(charge, bytes(48), request.bytes, 1, of_slot, 0, 0))

    first, second = requests
    signed = sign(first, slot)
    masked = {signed[27:35], sign(first, (slot + 1) % 256)[27:35], sign(first, (slot + 8) % 256)[27:35]}

    assert len(masked) == 3
    assert first == second or sign(second, slot)[27:35] not in masked
    assert charge.to_bytes(8, "big") not in masked
    assert sign(first, slot) == signed
    changed = bytearray(signed)
    changed[place // 8] ^= 1 << place % 8
    assert isinstance(KEYS.verify(base64.urlsafe_b64encode(changed), now=NOW), TokenRejection)


def test_the_masked_token_of_a_void_offer_costs_nothing() -> None:
    token = KEYS.signer.sign_masked(VOID_CHARGE, bytes(48), REQUEST.bytes, 1, 0, 0, 0)
    sold = KEYS.signer.sign_masked(build_charge(7) | 300, bytes(48), REQUEST.bytes, 1, 1, 0, 0)

    void, offer = KEYS.verify(token, now=NOW), KEYS.verify(sold, now=NOW)

    assert isinstance(void, OfferToken)
    assert isinstance(offer, OfferToken)
    assert (void.is_void, void.charge) == (True, 0)
    assert (offer.is_void, offer.charge, offer.topic) == (False, 300, 7)


def test_a_token_of_version_1_is_accepted_and_costs_nothing() -> None:
    offer = KEYS.verify(TOKEN_OF_VERSION_1, now=NOW)

    assert isinstance(offer, OfferToken)
    assert (offer.banner_id, offer.placement_id, offer.campaign_id) == (BANNER, PLACEMENT, CAMPAIGN)
    assert (offer.request_id, offer.slot, offer.issued_at) == (REQUEST, 3, NOW)
    assert (offer.lease, offer.charge) == (0, 0)


@pytest.mark.parametrize("token", [TOKEN_OF_VERSION_2, TOKEN_OF_VERSION_3])
def test_an_older_token_is_accepted_at_its_price(token: bytes) -> None:
    offer = KEYS.verify(token, now=NOW)

    assert isinstance(offer, OfferToken)
    assert (offer.banner_id, offer.placement_id, offer.campaign_id) == (BANNER, PLACEMENT, CAMPAIGN)
    assert (offer.lease, offer.charge, offer.charged_by) == (7, 250_000, ChargedBy.CLICK)
    assert (offer.issued_at, offer.is_void) == (NOW, False)


def test_the_token_of_a_void_offer_costs_nothing_and_does_not_show_it() -> None:
    token = a_token(charge=250_000, is_void=True)
    offer = KEYS.verify(token, now=NOW)

    assert isinstance(offer, OfferToken)
    assert (offer.is_void, offer.charge) == (True, 0)
    assert raw(token)[27:35] != raw(a_token())[27:35]


# Of a smaller price all bytes but one or two are zeros, and stand somewhere by chance.
@given(charge=st.integers(2**32, 2**40), charged_by=st.sampled_from(ChargedBy))
def test_a_token_does_not_show_its_price(charge: int, charged_by: ChargedBy) -> None:
    token, free = a_token(charge=charge, charged_by=charged_by), a_token()
    body = raw(token)[:-16]

    assert charge.to_bytes(8, "big")[2:] not in body
    # A price that is known does not open another one of the same ad, nor the same one of another ad.
    other = BannerId(UUID(int=BANNER.int + 1))
    of_another = raw(a_token(charge=charge, charged_by=charged_by, banner=other))
    difference = int.from_bytes(body[27:35], "big") ^ int.from_bytes(raw(free)[27:35], "big")
    assert difference != charge
    assert body[27:35] != of_another[27:35]


def test_forgotten_terms_are_encrypted_again_the_same_way() -> None:
    cipher = TermsCipher(SECRET)
    many = [pack_terms(bytes(32), bytes(16), n.to_bytes(8, "big")) for n in range(TERMS_KEPT_MAX + 1)]
    first = [cipher.encrypt(one) for one in many]

    assert [cipher.encrypt(one) for one in many[:10]] == first[:10]
    assert [cipher.decrypt(one) for one in first] == many
    assert len(set(first)) == len(first)


@given(place=st.integers(0, 115), character=st.sampled_from(URL_CHARACTERS))
def test_any_changed_character_of_a_token_of_version_1_is_rejected(place: int, character: str) -> None:
    token = TOKEN_OF_VERSION_1
    changed = token[:place] + character.encode() + token[place + 1 :]

    assert changed == token or isinstance(KEYS.verify(changed, now=NOW), TokenRejection)


@given(bit=st.integers(0, 99 * 8 - 1))
def test_any_flipped_bit_is_rejected(bit: int) -> None:
    changed = bytearray(raw(a_token()))
    changed[bit // 8] ^= 1 << bit % 8

    assert isinstance(KEYS.verify(base64.urlsafe_b64encode(changed), now=NOW), TokenRejection)


@given(place=st.integers(0, TOKEN_CHARACTERS - 1), character=st.characters(max_codepoint=255))
def test_any_changed_character_is_rejected(place: int, character: str) -> None:
    token = a_token()
    changed = token[:place] + character.encode("latin-1") + token[place + 1 :]

    assert changed == token or isinstance(KEYS.verify(changed, now=NOW), TokenRejection)


def test_a_token_has_only_one_encoding() -> None:
    tokens = (a_token(slot=slot) for slot in range(SLOT_MAX))
    token = next(one for one in tokens if b"-" in one and b"_" in one)

    assert KEYS.verify(token.replace(b"-", b"+"), now=NOW) is TokenRejection.MALFORMED
    assert KEYS.verify(token.replace(b"_", b"/"), now=NOW) is TokenRejection.MALFORMED
    assert KEYS.verify(token + b"=", now=NOW) is TokenRejection.MALFORMED
    assert KEYS.verify(token + b"\n", now=NOW) is TokenRejection.MALFORMED


@given(
    text=st.binary(max_size=200)
    | st.sampled_from((116, 132)).flatmap(
        lambda length: st.text(URL_CHARACTERS, min_size=length, max_size=length).map(str.encode)
    )
)
def test_an_unsigned_text_is_rejected(text: bytes) -> None:
    assert isinstance(KEYS.verify(text, now=NOW), TokenRejection)


@given(secret=st.text(min_size=32).filter(lambda text: text != SECRET))
def test_a_token_of_another_key_is_rejected(secret: str) -> None:
    assert isinstance(TokenKeys(secret).verify(a_token(), now=NOW), TokenRejection)


def test_a_token_of_another_key_with_the_same_id_is_rejected() -> None:
    others = (TokenKeys(f"another secret, the {number}th of them all") for number in range(10_000))
    same_id = next(keys for keys in others if keys.signer.key_id == KEYS.signer.key_id)

    assert same_id.verify(a_token(), now=NOW) is TokenRejection.FORGED
    assert isinstance(TokenKeys("new" * 20, older=[SECRET]).verify(a_token(), now=NOW), OfferToken)


def test_after_a_rotation_tokens_of_both_keys_are_accepted_and_the_new_key_signs() -> None:
    rotated = TokenKeys("the-secret-that-comes-after-the-first-one", older=[SECRET])

    assert isinstance(rotated.verify(a_token(), now=NOW), OfferToken)
    assert isinstance(rotated.verify(a_token(keys=rotated), now=NOW), OfferToken)
    assert KEYS.verify(a_token(keys=rotated), now=NOW) is TokenRejection.UNKNOWN_KEY


@pytest.mark.parametrize(
    ("age", "is_expired"), [(0, False), (30 * 60, False), (30 * 60 + 1, True), (-60, False)]
)
def test_a_token_expires_after_thirty_minutes_and_can_still_be_read(age: int, is_expired: bool) -> None:  # noqa: FBT001 - a case
    offer = KEYS.verify(a_token(issued_at=NOW), now=NOW + timedelta(seconds=age))

    assert isinstance(offer, OfferToken)
    assert offer.is_expired == is_expired
    assert (offer.banner_id, offer.placement_id, offer.campaign_id) == (BANNER, PLACEMENT, CAMPAIGN)
    assert offer.request_id == REQUEST


@given(st.lists(st.integers(-5 * 10**6, 5 * 10**6), min_size=1, max_size=5))
def test_a_token_is_expired_as_soon_as_its_offer_is_older_than_its_lifetime(micros: list[int]) -> None:
    token = a_token(issued_at=NOW + timedelta(microseconds=700_000))
    for each in micros:
        now = NOW + TOKEN_LIFETIME + timedelta(microseconds=each)
        offer = KEYS.verify(token, now=now)
        assert isinstance(offer, OfferToken)
        assert offer.is_expired == (now - offer.issued_at > TOKEN_LIFETIME)
        assert offer.read_at == pytest.approx(now.timestamp(), rel=0, abs=3e-7)


def test_a_secret_of_any_length_makes_a_key() -> None:
    keys = TokenKeys("ü" * 500)

    assert isinstance(keys.verify(a_token(keys=keys), now=NOW), OfferToken)


@given(user=st.uuids(), request_id=st.uuids(), other=st.uuids())
def test_the_user_of_an_offer_is_sealed_for_its_request(user: UUID, request_id: UUID, other: UUID) -> None:
    signer = KEYS.signer
    sealed = signer.seal_user(request_id.bytes, user.bytes)

    assert signer.open_user(sealed, request_id.bytes) == user
    assert user.bytes not in raw(sealed)
    assert other == request_id or signer.open_user(sealed, other.bytes) != user


def test_the_secret_that_signed_an_offer_opens_its_user() -> None:
    user = UUID(int=7)
    older = TokenSigner(SECRET)
    others = [TokenSigner(f"another secret of the tests, {number}") for number in range(2_000)]
    newest = next(number for number, one in enumerate(others) if one.key_id == older.key_id)
    keys = TokenKeys(f"another secret of the tests, {newest}", older=[SECRET])

    offer = keys.verify(a_token(), now=NOW)

    assert isinstance(offer, OfferToken)
    assert offer.signer.open_user(older.seal_user(offer.request, user.bytes), offer.request) == user


@given(st.binary(max_size=40))
def test_a_text_that_is_no_sealed_user_is_nobody(text: bytes) -> None:
    user = KEYS.signer.open_user(text, REQUEST.bytes)

    assert user is None or KEYS.signer.seal_user(REQUEST.bytes, user.bytes) == text
