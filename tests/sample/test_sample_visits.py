"""What simulated readers do with what they are shown."""

from adloom.sample.visitors.visitors import pick_visitor
from adloom.sample.visitors.visits import SIGHTS, SeenOffer, ctrs_of, pick_visit, react_to
from tests.sample.builders import a_chance, a_manifest


def an_offer(banner_id: str = "tea") -> SeenOffer:
    return SeenOffer(
        id=banner_id, campaign_id="c", tracking_token="t", impression_url="http://x/i", click_url="http://x/c"
    )


def test_the_same_chance_gives_the_same_visit() -> None:
    assert pick_visit(a_chance(7)) == pick_visit(a_chance(7))


def test_every_page_is_opened_sooner_or_later() -> None:
    chance = a_chance()

    opened = {pick_visit(chance).sight.path for _ in range(5_000)}

    assert opened == {sight.path for sight, _ in SIGHTS}


def test_clicks_come_as_often_as_the_banner_says_and_after_it_was_seen() -> None:
    chance = a_chance()

    reactions = [
        reaction for _ in range(20_000) for reaction in react_to([[an_offer()]], {"tea": 0.02}, chance)
    ]

    clicked = [it for it in reactions if it.clicked_after_seconds is not None]
    assert 0.9 < len(reactions) / 20_000 < 0.98
    assert 0.015 < len(clicked) / len(reactions) < 0.025
    assert all(it.seen_after_seconds >= 1 for it in reactions)
    assert all((it.clicked_after_seconds or 0) > it.seen_after_seconds for it in clicked)


def test_what_is_far_down_is_seen_less() -> None:
    chance = a_chance()
    slots = [[an_offer(str(number))] for number in range(6)]
    ctrs = {str(number): 0.0 for number in range(6)}

    seen = [it.offer.id for _ in range(2_000) for it in react_to(slots, ctrs, chance)]

    assert seen.count("0") > seen.count("1") > seen.count("3") > 0


def test_the_ad_of_somebody_else_is_neither_seen_nor_clicked() -> None:
    chance = a_chance()

    seen = [list(react_to([[an_offer("mine")]], {"tea": 1.0}, chance)) for _ in range(100)]

    assert not any(seen)


def test_every_banner_of_the_sample_has_readers_who_click_it() -> None:
    manifest = a_manifest()

    assert ctrs_of(manifest).keys() == set(manifest.ids_of("banners").values())
    assert all(0 < ctr < 0.05 for ctr in ctrs_of(manifest).values())


def test_readers_are_few_enough_to_come_back() -> None:
    chance = a_chance()

    assert len({pick_visitor(chance).id for _ in range(10_000)}) == 400
