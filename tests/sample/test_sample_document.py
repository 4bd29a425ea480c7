"""The document of the sample: it has every kind of thing, and only valid references."""

import json
from collections import Counter
from itertools import count

import pytest

from adloom.catalog.api import CATALOG
from adloom.catalog.campaign.model import CampaignStatus
from adloom.catalog.placement import Layout
from adloom.resource.transfer.document import read_json
from adloom.sample.content.articles import ARTICLES, Article
from adloom.sample.content.catalog import (
    ADVERTISERS,
    BANNER_BY_KEY,
    BANNERS,
    CAMPAIGNS,
    OUTSIDE,
    SLOT_BY_SLUG,
    SLOTS,
    BannerShape,
)
from adloom.sample.content.document import build_document, choose_ids
from adloom.schedule.pacing import PacingStrategy
from adloom.taxonomy.iab import load_content
from tests.sample.builders import LOADED_AT, a_manifest

DOCUMENT = build_document(a_manifest().things, delivery_url="http://127.0.0.1:8080", now=LOADED_AT)


def test_there_is_a_placement_of_every_layout() -> None:
    assert {slot.layout for slot in SLOTS} == {layout.value for layout in Layout}


def test_one_placement_is_free_for_the_first_ad_of_the_user() -> None:
    shown = {slug for campaign in CAMPAIGNS for slug in campaign.shows}

    assert [slot.slug for slot in SLOTS if slot.is_free] == ["hedgerow-yours"]
    assert "hedgerow-yours" not in shown
    # The guide offers the pictures of the last six, for a card: of a wide one it would show the middle only.
    assert {banner.shape for banner in BANNERS[-6:]} == {BannerShape.CARD}


def test_there_is_a_campaign_of_every_status_and_a_deleted_one() -> None:
    assert {campaign.status for campaign in CAMPAIGNS} == {status.value for status in CampaignStatus}
    assert any(campaign.is_deleted for campaign in CAMPAIGNS)


def test_there_is_a_running_campaign_for_every_bid_type_and_pacing() -> None:
    running = [campaign for campaign in CAMPAIGNS if campaign.status == "active"]

    assert {campaign.bid_type for campaign in running} == {"cpm", "cpc"}
    assert {campaign.pacing for campaign in running} == {strategy.value for strategy in PacingStrategy}
    assert any(campaign.impression_cap for campaign in running)
    assert any(campaign.rules for campaign in running)
    assert any(campaign.bid is None for campaign in running)


def test_every_auction_has_at_least_three_bidders() -> None:
    bidders = Counter(
        slug for campaign in CAMPAIGNS for slug in campaign.shows if SLOT_BY_SLUG[slug].auction_type
    )

    assert set(bidders) == {slot.slug for slot in SLOTS if slot.auction_type}
    assert min(bidders.values()) >= 3


@pytest.mark.parametrize("article", ARTICLES, ids=lambda article: article.key)
def test_every_article_has_contextual_demand_that_is_approved(article: Article) -> None:
    about = {node for one in article.categories for node in (one.id, *load_content().list_ancestors(one.id))}
    bids = [one for one in CAMPAIGNS if about & set(one.categories)]

    # Two slots, and no campaign in both.
    assert len([one for one in bids if not one.is_pending]) >= 2
    floors = {slot.floor_cpm for slot in SLOTS if slot.is_contextual}
    assert all(one.bid is not None and one.bid > max(floors) and one.creatives for one in bids)


def test_of_four_contextual_advertisers_one_waits_for_approval() -> None:
    contextual = [one for one in CAMPAIGNS if one.creatives]

    assert len({one.advertiser for one in contextual}) == 4
    assert [one.key for one in contextual if one.is_pending] == ["story-lamp"]
    sections = {article.section for article in ARTICLES}
    for one in contextual:
        assert all(set(BANNER_BY_KEY[key].liked_in) & sections for key in one.creatives)


def test_every_banner_is_shown_by_a_campaign_of_its_own_advertiser() -> None:
    shown = {
        (campaign.advertiser, key)
        for campaign in CAMPAIGNS
        for keys in (*campaign.shows.values(), campaign.creatives)
        for key in keys
    }

    assert shown == {(creative.advertiser, creative.key) for creative in BANNERS}
    assert set(BANNER_BY_KEY) == {key for _, key in shown}


def test_every_advertiser_has_a_different_budget() -> None:
    assert len({advertiser.daily_budget_paisa for advertiser in ADVERTISERS}) == len(ADVERTISERS)


def test_the_document_has_only_lists_and_fields_that_an_import_accepts() -> None:
    items = read_json(json.dumps(DOCUMENT).encode(), CATALOG.lists)

    for item in items:
        known = set(item.spec.aliases.values()) | {"id", "status"}
        assert set(item.decode()) <= known, item.path
    assert {item.spec.list_name for item in items} == set(DOCUMENT) <= set(CATALOG.lists.by_name)


def test_no_id_is_used_twice_but_for_the_shop_that_advertises_on_its_own_pages() -> None:
    things = a_manifest().things
    ids = [made_id for kind, made in things.items() if kind != "brands" for made_id in made.values()]

    twice = {made_id for made_id in ids if ids.count(made_id) > 1}

    assert twice == {things["advertisers"]["meadow"]} == {things["publishers"]["oak"]}


def test_a_thing_that_still_exists_keeps_its_id() -> None:
    numbers = count(10_000)
    existing = {"placements": {"hedgerow-top": "existing"}, "brands": {"own": "17"}}

    ids = choose_ids(lambda: f"{next(numbers):032x}", existing)

    assert ids["placements"]["hedgerow-top"] == "existing"
    assert ids["brands"]["own"] == "17"
    assert ids["placements"]["hedgerow-aside"] != "existing"


def test_every_external_thing_refers_to_earlier_ones() -> None:
    made = {(kind, key) for kind, ids in a_manifest().things.items() for key in ids}
    for thing in OUTSIDE:
        assert {*thing.parents.values(), *thing.own.values()} <= made, thing.key
        made.add((thing.kind, thing.key))
