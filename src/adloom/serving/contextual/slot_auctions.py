"""Holds the auctions of contextual slots: fills them, and publishes what is to be on record of that."""

from collections.abc import Callable, Collection
from uuid import UUID

from adloom.core.ids import RequestId
from adloom.events.log.event import Served, encode_event
from adloom.serving.auction.recorder import AuctionRecorder
from adloom.serving.contextual.fill import FilledSlot, SlotFiller
from adloom.serving.contextual.prepare import PreparedSlot
from adloom.serving.contextual.record import CONTEXTUAL, SlotRecord, build_auctioned
from adloom.serving.contextual.visit import SlotVisit
from adloom.serving.index.rendered_banner import unpack_ids

Publish = Callable[[bytes], object]


class SlotAuctions:
    """Fills slots, records a sample of their auctions, and publishes every offer if `publish_served` is there.

    A HEAD request was offered nothing.
    """

    def __init__(
        self,
        filler: SlotFiller,
        recorder: AuctionRecorder | None = None,
        *,
        publish_served: Publish | None = None,
    ) -> None:
        self._filler = filler
        self._fill = filler.fill
        self._recorder = recorder
        self._publish_served = publish_served
        self.find_capped = filler.find_capped

    def hold(
        self, prepared: PreparedSlot, visit: SlotVisit, number: int, on_page: Collection[int]
    ) -> FilledSlot | str:
        """Fill a slot, or return the name of what keeps it empty; `number` is the slot's in the request."""
        recorder, publish = self._recorder, self._publish_served
        is_offered = visit.http.method != b"HEAD"
        record = None
        if (
            recorder is not None
            and is_offered
            and (prepared.ready or prepared.removed)  # Without candidates there is no auction.
            and recorder.wants_next(visit.second + visit.now.microsecond / 1e6)
        ):
            record = SlotRecord()
        filled = self._fill(prepared, visit, number, on_page, record)
        served = None
        if publish is not None and is_offered and not isinstance(filled, str):
            served = _encode_served(filled, prepared, visit, number)
        if record is not None and recorder is not None:
            auctioned = build_auctioned(record, prepared, visit, number=number, scoring=self._filler.method)
            recorder.record_slot(auctioned, served)
        elif served is not None and publish is not None:
            publish(served)
        return filled


def _encode_served(filled: FilledSlot, prepared: PreparedSlot, visit: SlotVisit, number: int) -> bytes:
    winner = filled.winner
    banner_id, campaign_id = unpack_ids(winner.offer.pair)
    return encode_event(
        Served(
            request_id=RequestId(UUID(bytes=visit.request_id)),
            slot=number,
            banner_id=banner_id,
            placement_id=prepared.slot.id,
            campaign_id=campaign_id,
            placement_type=CONTEXTUAL,
            served_at=visit.now,
            user_id=visit.user_id,
            final_price=filled.price,
            winning_ecpm=winner.creative.bid,
        )
    )
