"""From the win of an auction to the bytes of its answer: fresh parts between some that were encoded before."""

from datetime import datetime
from functools import lru_cache
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import PlacementId, WrittenId
from adloom.core.money import Micros
from adloom.delivery.auction.book import Bidder
from adloom.delivery.auction.decide import Win
from adloom.delivery.auction.request import NOBODY
from adloom.delivery.creative import token_terms_of
from adloom.delivery.encode import MillisecondStamp
from adloom.ledger.token import TokenSigner, packed_charge

PAIRS_REMEMBERED_MAX: Final = 4_096

_MICROS_A_STEP: Final = 100
_STEPS_A_UNIT: Final = 10_000


class AdEncoder:
    """Signs and encodes what was won."""

    def __init__(self, signer: TokenSigner, *, public_url: str) -> None:
        self._sign = signer.sign
        origin = msgspec.json.encode(public_url)[1:-1]
        self._impression = b'","impressionUrl":"%b/i/' % origin
        self._click = b'","clickUrl":"%b/c/' % origin
        self._stamp = MillisecondStamp()

    def token(  # noqa: PLR0913 - all that an offer is
        self,
        bidder: Bidder,
        placement_id: PlacementId,
        cost: Micros,
        *,
        auction_id: WrittenId,
        second: int,
        lease: int,
    ) -> bytes:
        """Sign the one offer of an auction, at the price that it has."""
        charge = packed_charge(cost, bidder.price.charged_by)
        terms = token_terms_of(bidder.pair, placement_id.bytes, charge)
        return self._sign(terms, request_id=auction_id.bytes, issued_at=second, slot=0, lease=lease)

    def answer(  # noqa: PLR0913 - all that an answer has
        self, win: Win, token: bytes, *, auction_id: WrittenId, user_id: UUID, now: datetime, second: int
    ) -> bytes:
        """Encode the ad; its pixel says who has seen it, which counts against caps on how often one may."""
        bidder = win.bidder
        return b"".join(
            (
                _ids_of(bidder.pair),
                bidder.creative,
                b',"finalPrice":',
                price_shown(win.final),
                b',"servedAt":"',
                self._stamp.of(now, second),
                b'","auctionId":"',
                str(auction_id).encode(),
                b'","trackingToken":"',
                token,
                self._impression,
                token,
                b"" if user_id == NOBODY else b"?userId=%b" % str(user_id).encode(),
                self._click,
                token,
                b'"}',
            )
        )


def price_shown(amount: Micros) -> bytes:
    """Write an amount with at most four places, half to even, as all amounts of the API are."""
    steps, rest = divmod(amount, _MICROS_A_STEP)
    twice = 2 * rest
    steps += twice > _MICROS_A_STEP or (twice == _MICROS_A_STEP and steps % 2 == 1)
    return repr(steps / _STEPS_A_UNIT).encode()


@lru_cache(PAIRS_REMEMBERED_MAX)
def _ids_of(pair: bytes) -> bytes:
    banner_id, campaign_id = UUID(bytes=pair[:16]), UUID(bytes=pair[16:])
    return b'{"adId":"%b","campaignId":"%b",' % (str(banner_id).encode(), str(campaign_id).encode())
