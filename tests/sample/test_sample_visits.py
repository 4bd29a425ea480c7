"""The reactions of simulated visitors to offers."""

from adloom.sample.content.articles import ARTICLES
from adloom.sample.visitors.visitors import pick_visitor
from adloom.sample.visitors.visits import SIGHTS, SeenOffer, list_ctrs, pick_visit, react_to
from tests.sample.builders import a_chance, a_manifest


def an_offer(banner_id: str = "tea") -> SeenOffer:
    return SeenOffer(
        id=banner_id, campaign_id="c", tracking_token="t", impression_url="http://x/i", click_url="http://x/c"
    )


def test_the_same_seed_gives_the_same_visit() -> None:
    assert pick_visit(a_chance(7)) == pick_visit(a_chance(7))


def test_every_page_is_visited() -> None:
    chance = a_chance()

    opened = {pick_visit(chance).sight.path for _ in range(5_000)}

    assert opened == {sight.path for sight, _ in SIGHTS}


def test_clicks_follow_impressions_at_the_ctr_of_the_banner() -> None:
    chance = a_chance()

    reactions = [
        reaction for _ in range(20_000) for reaction in react_to([[an_offer()]], {"tea": 0.02}, chance)
    ]

    clicked = [reaction for reaction in reactions if reaction.clicked_after_seconds is not None]
    assert 0.9 < len(reactions) / 20_000 < 0.98
    assert 0.015 < len(clicked) / len(reactions) < 0.025
    assert all(reaction.seen_after_seconds >= 1 for reaction in reactions)
    assert all((reaction.clicked_after_seconds or 0) > reaction.seen_after_seconds for reaction in clicked)


def test_slots_further_down_have_fewer_impressions() -> None:
    chance = a_chance()
    slots = [[an_offer(str(number))] for number in range(6)]
    ctrs = {str(number): 0.0 for number in range(6)}

    seen = [reaction.offer.id for _ in range(2_000) for reaction in react_to(slots, ctrs, chance)]

    assert seen.count("0") > seen.count("1") > seen.count("3") > 0


def test_an_ad_outside_the_sample_is_neither_seen_nor_clicked() -> None:
    chance = a_chance()

    seen = [list(react_to([[an_offer("mine")]], {"tea": 1.0}, chance)) for _ in range(100)]

    assert not any(seen)


def test_every_banner_of_the_sample_has_a_ctr() -> None:
    manifest = a_manifest()

    assert list_ctrs(manifest).keys() == set(manifest.get_ids("banners").values())
    assert all(0 < ctr < 0.05 for ctr in list_ctrs(manifest).values())


def test_readers_click_more_on_what_they_read_about() -> None:
    manifest = a_manifest()
    books = manifest.get_ids("banners")["story-books"]

    reading, walking = list_ctrs(manifest, "Reading"), list_ctrs(manifest, "Walks")

    assert reading[books] > 5 * walking[books]
    assert [sight.section for sight, _ in SIGHTS if sight.section] == [one.section for one in ARTICLES]


def test_there_are_400_visitors_who_return() -> None:
    chance = a_chance()

    assert len({pick_visitor(chance).id for _ in range(10_000)}) == 400
