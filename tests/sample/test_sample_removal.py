"""The plan of a removal: what is removed, and what stays because something else uses it."""

from typing import Any

from adloom.sample.content.document import build_document
from adloom.sample.manifest import Manifest
from adloom.sample.removal import GOING, Removal, UsedBy, plan_removal
from tests.sample.builders import LOADED_AT, a_manifest

MANIFEST = a_manifest()


def a_catalog(**more: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    lists = build_document(MANIFEST.things, delivery_url="http://127.0.0.1:8080", now=LOADED_AT)
    return {kind: [*items, *more.get(kind, [])] for kind, items in lists.items()}


def kept(removal: Removal) -> set[tuple[str, str]]:
    return {(stays.kind, stays.key) for stays in removal.stays}


def test_everything_is_removed_if_nothing_else_uses_it() -> None:
    removal = plan_removal(MANIFEST, a_catalog(), {})

    assert removal.stays == []
    assert len(removal.goes) == sum(len(MANIFEST.get_ids(kind)) for kind in GOING)


def test_things_are_removed_before_those_that_they_refer_to() -> None:
    kinds = [kind for kind, _, _ in plan_removal(MANIFEST, a_catalog(), {}).goes]

    assert list(dict.fromkeys(kinds)) == list(GOING)


def test_a_placement_that_your_campaign_uses_stays_with_its_site_and_publisher() -> None:
    mine = {"id": "mine", "name": "Mine", "advertiserId": None}
    link = {"campaignId": "mine", "placementId": MANIFEST.get_ids("placements")["oak-pair"]}

    removal = plan_removal(MANIFEST, a_catalog(campaigns=[mine], links=[link]), {})

    assert kept(removal) == {("placements", "oak-pair"), ("sites", "oak"), ("publishers", "oak")}
    assert {stays.used_by for stays in removal.stays} == {UsedBy("links", "Mine")}


def test_a_banner_that_your_campaign_shows_stays_with_its_advertiser_and_brand() -> None:
    mine = {"id": "mine", "name": "Mine", "advertiserId": None}
    shown = {"campaignId": "mine", "placementId": "elsewhere", "bannerId": MANIFEST.get_ids("banners")["tea"]}

    removal = plan_removal(MANIFEST, a_catalog(campaigns=[mine], assignments=[shown]), {})

    assert kept(removal) == {("banners", "tea"), ("advertisers", "kettle"), ("brands", "teas")}


def test_an_advertiser_with_a_campaign_of_yours_stays() -> None:
    mine = {"id": "mine", "name": "Mine", "advertiserId": MANIFEST.get_ids("advertisers")["lumen"]}

    removal = plan_removal(MANIFEST, a_catalog(campaigns=[mine]), {})

    assert kept(removal) == {("advertisers", "lumen")}


def test_an_advertiser_with_an_ad_account_of_yours_stays() -> None:
    used = {MANIFEST.get_ids("advertisers")["meadow"]: UsedBy("adAccounts", "Mine")}

    removal = plan_removal(MANIFEST, a_catalog(), used)

    assert kept(removal) == {("advertisers", "meadow")}


def test_your_banner_in_a_campaign_of_the_sample_does_not_stop_its_removal() -> None:
    mine = {"id": "mine", "title": "Mine", "advertiserId": None, "brandId": None}
    shown = {
        "campaignId": MANIFEST.get_ids("campaigns")["house"],
        "placementId": MANIFEST.get_ids("placements")["hedgerow-top"],
        "bannerId": "mine",
    }

    removal = plan_removal(MANIFEST, a_catalog(banners=[mine], assignments=[shown]), {})

    assert removal.stays == []


def test_a_removal_is_planned_although_things_were_deleted_by_hand() -> None:
    empty: dict[str, list[dict[str, Any]]] = {}

    removal = plan_removal(MANIFEST, empty, {})

    assert len(removal.goes) == sum(len(MANIFEST.get_ids(kind)) for kind in GOING)


def test_a_manifest_without_things_is_empty() -> None:
    manifest: Manifest = MANIFEST
    for kind, ids in MANIFEST.things.items():
        for key in ids:
            manifest = manifest.without(kind, key)

    assert (manifest.count, manifest.things) == (0, {})
