"""Neutral names of public paths, and words that ad blockers look for."""

import pytest

from adloom.core.public_paths import NEUTRAL_NAMES, find_blocked_word, name_neutrally, parse_public_prefix
from adloom.core.setting import SettingValueError
from adloom.runtime.background_settings import read_crawler_settings
from adloom.runtime.settings import read_delivery_settings
from tests.support.for_each import for_each

GOOD = {
    "DATABASE_URL": "postgresql://adloom@db.internal/adloom",
    "REDIS_URL": "redis://cache.internal:6379/0",
    "ADLOOM_TOKEN_SECRET": "t" * 40,
}


def test_no_neutral_name_has_a_word_that_ad_blockers_look_for() -> None:
    assert {name for name in NEUTRAL_NAMES.values() if find_blocked_word(name)} == set()
    assert len(set(NEUTRAL_NAMES.values())) == len(NEUTRAL_NAMES)


@for_each(
    ("path", "name"),
    [
        ("/banners/serve/home-hero", "/a/items/home-hero"),
        ("/banners/serve", "/a/items"),
        ("/serve/home.html", "/a/box/home.html"),
        ("/tag.js", "/a/loom.js"),
        ("/tag-0123.js", "/a/loom-0123.js"),
        ("/tag-debug.js", "/a/loom-debug.js"),
        ("/i/token", "/a/i/token"),
    ],
)
def test_a_path_has_a_neutral_name_below_the_prefix(path: str, name: str) -> None:
    assert name_neutrally(path, "/a") == name
    assert name_neutrally(path, "") == path


@for_each(
    ("slug", "word"),
    [
        ("home-banner", "banner"),
        ("ad-home", "ad"),
        ("top-728x90", "728x90"),
        ("ads", "ads"),
        ("sidebar-advertisement", "advertisement"),
        ("sponsored-box", "sponsored"),
        ("top-adslot", "adslot"),
        ("topbanner2", "topbanner2"),
        ("home-hero", None),
        ("header", None),
        ("adam-and-eve", None),
        ("download-page", None),
        ("soundtracks", None),
        ("article-top", None),
    ],
)
def test_words_that_ad_blockers_look_for_are_found_in_slugs(slug: str, word: str | None) -> None:
    assert find_blocked_word(slug) == word


@for_each(
    "prefix", ["a", "/", "/A", "/a b", "/a//b", "/ads", "/my/banners", "/i", "/v1", "/health", "/tag-x"]
)
def test_a_prefix_that_would_not_work_is_refused(prefix: str) -> None:
    with pytest.raises(SettingValueError):
        parse_public_prefix(prefix)


def test_addresses_in_offers_and_of_the_crawler_are_below_the_prefix() -> None:
    given = {**GOOD, "ADLOOM_DELIVERY_URL": "https://media.example.com", "ADLOOM_PUBLIC_PREFIX": "/a/"}

    assert read_delivery_settings(given).link_url == "https://media.example.com/a"
    assert (
        read_crawler_settings(given).outbound.user_agent
        == "AdloomBot/1.0 (+https://media.example.com/a/crawler)"
    )
    assert read_delivery_settings(GOOD).link_url == "http://127.0.0.1:8080"
