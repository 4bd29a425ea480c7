"""An entry composed of parts is the one that encoding the whole event gives."""

from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.events.log.event import Served, decode_event
from adloom.events.log.served_encoder import ServedEventEncoder

ids = st.uuids(version=4)
amounts = st.integers(0, 2**62).map(Micros)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1)).map(  # noqa: DTZ001 - of UTC, see below
    lambda moment: moment.replace(tzinfo=UTC)
)


@given(
    same=st.tuples(ids, ids, ids, st.text(min_size=1, max_size=50), amounts, amounts),
    request_id=ids,
    user_id=st.one_of(ids, st.just(UUID(int=0))),
    served_at=moments,
)
def test_a_composed_entry_decodes_to_the_same_event(
    same: tuple[UUID, UUID, UUID, str, Micros, Micros], request_id: UUID, user_id: UUID, served_at: datetime
) -> None:
    banner_id, placement_id, campaign_id, placement_type, final_price, winning_ecpm = same
    entries = ServedEventEncoder(
        banner_id=BannerId(banner_id),
        placement_id=PlacementId(placement_id),
        campaign_id=CampaignId(campaign_id),
        placement_type=placement_type,
        final_price=final_price,
        winning_ecpm=winning_ecpm,
    )

    entry = entries.encode(request_id.bytes, served_at, int(served_at.timestamp()), user_id.bytes)

    assert decode_event(entry) == Served(
        request_id=RequestId(request_id),
        slot=0,
        banner_id=BannerId(banner_id),
        placement_id=PlacementId(placement_id),
        campaign_id=CampaignId(campaign_id),
        placement_type=placement_type,
        served_at=served_at,
        user_id=user_id,
        final_price=final_price,
        winning_ecpm=winning_ecpm,
    )
