"""Encodes the answer of a won auction: fresh parts between parts that are rendered once per win."""

from datetime import datetime
from typing import Final

import msgspec

from adloom.core.ids import NO_USER, OpaqueId
from adloom.core.money import Micros
from adloom.events.ingest.token import TokenSigner, pack_charge, pack_terms
from adloom.events.log.served_encoder import ServedEventEncoder
from adloom.serving.auction.decide import WinningBid
from adloom.serving.direct.encode import MILLISECONDS, MillisecondStamp
from adloom.serving.index.bid_block import Bidder
from adloom.serving.index.index import IndexedPlacement
from adloom.serving.index.rendered_banner import unpack_ids

RENDERED_MAX: Final = 4_096

_NO_USER: Final = NO_USER.bytes
_MICROS_A_STEP: Final = 100
_STEPS_A_UNIT: Final = 10_000


class RenderedWin(msgspec.Struct, frozen=True, gc=False):
    """What all offers of a win have in common, encoded once."""

    placement: IndexedPlacement
    terms: bytes  # Of the token.
    ad: bytes  # The first part of the answer.
    entry: ServedEventEncoder  # For the event log.


class AdEncoder:
    """Signs and encodes wins."""

    def __init__(self, signer: TokenSigner, *, public_url: str) -> None:
        self._sign = signer.sign
        self._seal_user = signer.seal_user
        origin = msgspec.json.encode(public_url)[1:-1]
        self._impression = b'","impressionUrl":"%b/i/' % origin
        self._click = b'","clickUrl":"%b/c/' % origin
        self._stamp = MillisecondStamp()
        self.find_second = self._stamp.find_second
        self._rendered: dict[tuple[bytes, int, Micros, Micros, Micros], tuple[Bidder, RenderedWin]] = {}

    def render(self, win: WinningBid, cost: Micros, placement: IndexedPlacement) -> RenderedWin:
        """Render a win at its price, cached: visitors of many kinds get the same."""
        bidder = win.bidder
        key = bidder.pair, bidder.placement_key, win.final, win.ecpm, cost
        known = self._rendered.get(key)
        if known is not None and known[0] is bidder:
            return known[1]
        if len(self._rendered) >= RENDERED_MAX:
            self._rendered.clear()
        rendered = self._render(win, cost, placement)
        self._rendered[key] = bidder, rendered
        return rendered

    def _render(self, win: WinningBid, cost: Micros, placement: IndexedPlacement) -> RenderedWin:
        bidder = win.bidder
        banner_id, campaign_id = unpack_ids(bidder.pair)
        return RenderedWin(
            placement,
            pack_terms(bidder.pair, placement.id.bytes, pack_charge(cost, bidder.price.charged_by)),
            b'{"adId":"%b","campaignId":"%b",%b,"finalPrice":%b,"servedAt":"'
            % (str(banner_id).encode(), str(campaign_id).encode(), bidder.creative, format_price(win.final)),
            ServedEventEncoder(
                banner_id=banner_id,
                placement_id=placement.id,
                campaign_id=campaign_id,
                placement_type=placement.type,
                final_price=win.final,
                winning_ecpm=win.ecpm,
            ),
        )

    def encode(  # noqa: PLR0913, PLR0917 - on the path of every request, where names would cost
        self,
        rendered: RenderedWin,
        terms: bytes,
        auction_id: OpaqueId,
        user: bytes,
        now: datetime,
        second: int,
        lease: int,
    ) -> bytes:
        """Encode an offer with the terms of its token; its pixel has the user, for frequency caps.

        Only we can read who it is.
        """
        request_id, micros, stamp = auction_id.bytes, now.microsecond, self._stamp
        token = self._sign(terms, request_id, second, 0, lease, micros)
        return b"".join(
            (
                rendered.ad,
                stamp.written if second == stamp.second else stamp.begin(now, second),
                MILLISECONDS[micros // 1000],
                b'","auctionId":"',
                str(auction_id).encode(),
                b'","trackingToken":"',
                token,
                self._impression,
                token,
                b"" if user == _NO_USER else b"?u=" + self._seal_user(request_id, user),
                self._click,
                token,
                b'"}',
            )
        )


def format_price(amount: Micros) -> bytes:
    """Write an amount with at most four places, rounded half to even, as everywhere in the API."""
    steps, rest = divmod(amount, _MICROS_A_STEP)
    twice = 2 * rest
    steps += twice > _MICROS_A_STEP or (twice == _MICROS_A_STEP and steps % 2 == 1)
    return repr(steps / _STEPS_A_UNIT).encode()
