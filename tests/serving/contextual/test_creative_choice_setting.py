"""`ADLOOM_CREATIVE_CHOICE` says how the creative of a contextual slot is chosen."""

import json

import pytest

from adloom.auction.creative_choice import ChoiceMethod
from adloom.core.setting import SettingsError
from adloom.market.results.window import SiteResults
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.runtime.settings import read_control_settings, read_delivery_settings
from tests.runtime.test_settings import GOOD
from tests.support.contextual_site import Site, a_creative

VARIABLE = "ADLOOM_CREATIVE_CHOICE"
ASKED = FastRequest(b"GET", b"/v1/serve", query=b"slot=top&url=https%3A%2F%2Fexample.com%2Fa")
TIMES = 300


def share_of_the_newcomer(method: ChoiceMethod) -> float:
    """How often a creative that nobody has seen is shown beside one that many click."""
    known, newcomer = a_creative(1, cpm=5), a_creative(2, cpm=5)
    site = Site(known, newcomer)
    site.method = method
    site.results = SiteResults(1, {known.assignment.banner_key: (5_000, 100)}, click_rate=0.004)
    routes = site.routes()
    shown: list[str] = []
    for _ in range(TIMES):
        answer = routes.serve(ASKED)
        assert isinstance(answer, FastAnswer)
        shown.append(json.loads(answer.body)["bannerId"])
    return shown.count(str(newcomer.assignment.banner_id)) / TIMES


def test_the_default_is_the_choice_that_gets_the_most_clicks() -> None:
    for settings in (read_delivery_settings(GOOD), read_control_settings(GOOD)):
        assert settings.auctions.creative_choice == ChoiceMethod.INFORMED


@pytest.mark.parametrize(("word", "least", "most"), [("informed", 0.0, 0.1), ("ladder", 0.9, 1.0)])
def test_creatives_are_chosen_as_the_setting_says(word: str, least: float, most: float) -> None:
    settings = read_delivery_settings({**GOOD, VARIABLE: word})

    share = share_of_the_newcomer(ChoiceMethod(settings.auctions.creative_choice))

    assert least <= share <= most


def test_another_word_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(SettingsError, match=f"{VARIABLE} is 'greedy': expected one of informed, ladder"):
        read_delivery_settings({**GOOD, VARIABLE: "greedy"})


def test_every_method_can_be_set() -> None:
    assert [
        read_delivery_settings({**GOOD, VARIABLE: one.value}).auctions.creative_choice for one in ChoiceMethod
    ] == [one.value for one in ChoiceMethod]
