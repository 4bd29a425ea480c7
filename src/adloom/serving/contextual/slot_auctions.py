"""Holds the auctions of contextual slots: fills them, and publishes what is to be on record of that."""

from collections.abc import Callable

from adloom.core.ids import RequestId, read_uuid
from adloom.events.log.event import Served, encode_event
from adloom.serving.auction.recorder import AuctionRecorder
from adloom.serving.contextual.fill import FilledSlot, SlotFiller
from adloom.serving.contextual.page_lookup import PlannedSlots
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
        self._fill_all = filler.fill_all
        self._recorder = recorder
        self._publish_served = publish_served
        self.find_capped = filler.find_capped

    def hold(self, planned: PlannedSlots, visit: SlotVisit, on_page: set[int]) -> list[FilledSlot | str]:
        """Fill slots of a page, each unless something keeps it empty, which is named then.

        Campaigns and banners that fill one are added to those that are `on_page` already.
        """
        recorder, slots, numbers = self._recorder, planned.slots, planned.numbers
        if visit.http.method == b"HEAD" or (
            self._publish_served is None
            and (recorder is None or recorder.leave_out(visit.at, planned.auctions))
        ):
            return self._fill_all(slots, visit, numbers, on_page)
        records: list[SlotRecord | None] = [
            # Without candidates there is no auction.
            SlotRecord()
            if recorder is not None and one.shortlist.candidates and recorder.wants_next(visit.at)
            else None
            for one in slots
        ]
        filled = self._fill_all(slots, visit, numbers, on_page, records)
        for record, slot, number, one in zip(records, slots, numbers, filled, strict=False):
            self._publish(record, slot, visit, number, one)
        return filled

    def _publish(
        self,
        record: SlotRecord | None,
        slot: PreparedSlot,
        visit: SlotVisit,
        number: int,
        filled: FilledSlot | str,
    ) -> None:
        served = None
        if self._publish_served is not None and not isinstance(filled, str):
            served = _encode_served(filled, slot, visit, number)
        if record is not None and self._recorder is not None:
            auctioned = build_auctioned(record, slot, visit, number=number, scoring=self._filler.method)
            self._recorder.record_slot(auctioned, served)
        elif served is not None and self._publish_served is not None:
            self._publish_served(served)


def _encode_served(filled: FilledSlot, prepared: PreparedSlot, visit: SlotVisit, number: int) -> bytes:
    winner = filled.winner
    banner_id, campaign_id = unpack_ids(winner.offer.pair)
    return encode_event(
        Served(
            request_id=RequestId(read_uuid(visit.request_id)),
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
