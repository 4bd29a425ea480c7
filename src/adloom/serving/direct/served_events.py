"""Publishes what was offered to the event log; no answer waits for it."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final
from uuid import UUID

from adloom.core.ids import BannerId, CampaignId, OpaqueId, RequestId
from adloom.events.log.event import Served, encode_event
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.eligibility.placement_state import RenderedOffer
from adloom.serving.index.index import IndexedPlacement
from adloom.serving.request.context import USER_ID
from adloom.serving.request.overrides import parse_query

PAIRS_REMEMBERED_MAX: Final = 4_096

Tell = Callable[[bytes], object]


class ServedEventPublisher:
    """Publishes every offer of every answer; `publish` takes an encoded event and does not wait."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def publish(  # noqa: PLR0913 - all that an offer is of
        self,
        request: FastRequest,
        placement: IndexedPlacement,
        offers: Sequence[RenderedOffer],
        *,
        request_id: OpaqueId,
        now: datetime,
        user_id: UUID | None,
    ) -> None:
        """Publish the offers of an answer; a HEAD request was offered nothing."""
        if not offers or request.method == b"HEAD":
            return
        served_to = user_id or _parse_user(request.query)
        in_request = RequestId(UUID(bytes=request_id.bytes))
        for slot, offer in enumerate(offers):
            banner_id, campaign_id = _unpack_ids(offer.candidate.pair)
            served = Served(
                request_id=in_request,
                slot=slot,
                banner_id=banner_id,
                placement_id=placement.id,
                campaign_id=campaign_id,
                placement_type=placement.type,
                served_at=now,
                user_id=served_to,
            )
            self._tell(encode_event(served))


def _parse_user(query: bytes) -> UUID | None:
    return parse_query(query).user_id if USER_ID in query else None


@lru_cache(PAIRS_REMEMBERED_MAX)
def _unpack_ids(pair: bytes) -> tuple[BannerId, CampaignId]:
    return BannerId(UUID(bytes=pair[:16])), CampaignId(UUID(bytes=pair[16:]))
