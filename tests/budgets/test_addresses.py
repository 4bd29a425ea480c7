"""The addresses of budget actors."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.addresses import (
    make_advertiser_address,
    make_campaign_address,
    make_session_topic,
    parse_advertiser_key,
    parse_campaign_key,
)
from adloom.core.ids import AdvertiserId, CampaignId
from tests.budgets.builders import ADVERTISER_ID, CAMPAIGN_ID


def test_the_address_of_a_campaign_has_its_advertiser_and_its_own_id() -> None:
    address = make_campaign_address(CAMPAIGN_ID, ADVERTISER_ID)

    assert address == ("campaign", f"{ADVERTISER_ID}|{CAMPAIGN_ID}")


def test_a_campaign_without_an_advertiser_has_a_dash_in_its_place() -> None:
    address = make_campaign_address(CAMPAIGN_ID, None)

    assert address.key == f"-|{CAMPAIGN_ID}"


def test_the_address_of_an_advertiser_has_its_id() -> None:
    address = make_advertiser_address(ADVERTISER_ID)

    assert address == ("advertiser", str(ADVERTISER_ID))
    assert parse_advertiser_key(address.key) == ADVERTISER_ID


def test_a_session_has_its_own_topic() -> None:
    assert make_session_topic(7) == "session:7"


@given(st.uuids(), st.none() | st.uuids())
def test_a_key_names_its_campaign(campaign: UUID, advertiser: UUID | None) -> None:
    campaign_id = CampaignId(campaign)
    advertiser_id = None if advertiser is None else AdvertiserId(advertiser)

    assert parse_campaign_key(make_campaign_address(campaign_id, advertiser_id).key) == (
        campaign_id,
        advertiser_id,
    )
