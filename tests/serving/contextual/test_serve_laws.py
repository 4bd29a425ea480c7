"""Laws of contextual delivery, whatever a shortlist says: it may be old, and of another page, site or catalog."""

import json
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from adloom.auction.site_modes import ApprovalMode, AuctionMode
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.serving.contextual.prepare import PreparedSlot, PreparedSlots, prepare_slot
from adloom.serving.index.bid_block import lower_bid
from adloom.serving.index.contextual import CreativeRow
from adloom.serving.index.index import Index
from adloom.serving.index.rows import AssignmentStatus
from adloom.taxonomy.iab import load_content
from tests.support.contextual_site import (
    FOOD,
    NOON,
    SPORTS,
    TENNIS,
    UNIT,
    Site,
    a_creative,
    banner,
    read_token,
)

STATUSES = (AssignmentStatus.LIVE, AssignmentStatus.LIVE, AssignmentStatus.CAMPAIGN_PAUSED)
CATEGORIES = (SPORTS, TENNIS, FOOD, None)

chances = st.integers(0, 10**9).map(Random)


def draw_creative(number: int, chance: Random) -> CreativeRow:
    wanted = chance.sample((SPORTS, TENNIS, FOOD), chance.randint(1, 2))
    terms = {
        "categories": wanted,
        "takes_filler": chance.random() < 0.3,
        "product_category": chance.choice((None, "1004")),
        "blocked_sites": chance.choice(((), (), ("example.com",))),
        "excluded_categories": tuple(chance.sample((SPORTS, TENNIS, FOOD), chance.choice((0, 0, 1)))),
    }
    return a_creative(number, cpm=chance.choice((0.3, 1, 5, 9)), terms=terms, status=chance.choice(STATUSES))


def draw_site(chance: Random) -> Site:
    site = Site(
        *(draw_creative(number, chance) for number in range(1, chance.randint(2, 5))),
        slot={"floor": Micros(chance.choice((0, 2)) * UNIT)},
        auction_mode=chance.choice(tuple(AuctionMode)),
        blocked_products=chance.choice(((), ("1002",))),
        accepts_filler=chance.random() < 0.5,
    )
    site.categories = tuple(chance.sample((SPORTS, TENNIS, FOOD), chance.randint(0, 2)))
    site.category = chance.choice(CATEGORIES)
    site.listed_until = NOON + timedelta(hours=chance.choice((-1, 0, 1)))
    draw_approvals(site, chance)
    return site


def draw_approvals(site: Site, chance: Random) -> None:
    mode = chance.choice(tuple(ApprovalMode))
    decided = {
        banner(number): chance.choice(tuple(ApprovalState)) for number in range(1, 5) if chance.random() < 0.5
    }
    site.approvals = ApprovalRules(mode, decided)


def find_row(site: Site, ad: dict[str, Any]) -> CreativeRow:
    [row] = [one for one in site.creatives if str(one.assignment.banner_id) == ad["bannerId"]]
    return row


@settings(max_examples=150)
@given(chances)
def test_whatever_a_shortlist_says_only_what_is_allowed_now_is_served(chance: Random) -> None:
    site = draw_site(chance)
    answer = site.ask()
    if not answer.body:
        return
    ad = json.loads(answer.body)
    row = find_row(site, ad)
    terms, assignment = row.terms, row.assignment
    page = {node for one in site.categories for node in (one, *load_content().list_ancestors(one))}

    # Its category is one of the page's, or above one; without any it is filler, which both want.
    if ad["category"] is None:
        assert not page
        assert terms.takes_filler
        assert site.site["accepts_filler"]
    else:
        assert ad["category"]["id"] in page
        assert ad["category"]["id"] in terms.categories
    # The page has nothing that it excludes.
    assert page.isdisjoint(terms.excluded_categories)
    # It is approved, active and blocked by nobody.
    assert site.approvals.judge(assignment.banner_id, assignment.advertiser_id) is ApprovalState.APPROVED
    assert assignment.status is AssignmentStatus.LIVE
    assert not terms.blocked_sites
    assert terms.product_category is None or not site.site["blocked_products"]
    # Nothing that has expired is served.
    assert site.listed_until > NOON
    # It pays at least the floor and at most its bid.
    floor = max(UNIT // 2, site.slot["floor"])
    charge = read_token(ad).charge
    assert assignment.bid is not None
    assert floor // 1_000 <= charge <= -(-assignment.bid // 1_000)


@settings(max_examples=100)
@given(chances, st.floats(0.01, 1))
def test_a_campaign_pays_at_most_its_multiplied_bid_and_at_least_the_floor(
    chance: Random, multiplier: float
) -> None:
    site = draw_site(chance)
    keys = {one.assignment.campaign_key for one in site.creatives}
    site.states.set_multipliers(dict.fromkeys(keys, multiplier))
    answer = site.ask()
    if not answer.body:
        return
    ad = json.loads(answer.body)
    bid = find_row(site, ad).assignment.bid
    assert bid is not None
    lowered = lower_bid(bid, multiplier)

    floor = max(UNIT // 2, site.slot["floor"])
    assert floor <= lowered <= bid
    assert floor // 1_000 <= read_token(ad).charge <= -(-lowered // 1_000)


@settings(max_examples=100)
@given(chances)
def test_who_excludes_a_page_changes_neither_its_winner_nor_its_price(chance: Random) -> None:
    site = Site(
        *(draw_creative(number, chance) for number in range(1, chance.randint(3, 6))),
        auction_mode=chance.choice(tuple(AuctionMode)),
    )
    site.categories = (chance.choice((TENNIS, SPORTS)),)
    page = {SPORTS, *site.categories}
    served = [describe_ads(site)]

    site.creatives = tuple(row for row in site.creatives if page.isdisjoint(row.terms.excluded_categories))
    served.append(describe_ads(site))

    assert served[0] == served[1]


def describe_ads(site: Site) -> list[object]:
    """Return banner and price of an ad that is asked for alone, and of three on one page."""
    answer = site.ask()
    ads = [json.loads(answer.body)] if answer.body else []
    ads += [ad for ad in site.batch("top", "side", "end")["slots"].values() if ad is not None]
    return [(ad["slot"], ad["bannerId"], read_token(ad).charge) for ad in ads]


def test_a_campaign_knows_how_often_and_on_which_site_it_was_requested() -> None:
    site = Site(a_creative(1, cpm=5))
    index, routes = site.index(), site.routes()
    [own] = [key for key in index.by_key if key < 0]
    for _ in range(3):
        routes.serve(FastRequest(b"GET", b"/v1/serve", query=b"slot=top&url=https%3A%2F%2Fexample.com%2Fa"))
    site.states.take_requested()  # The lease client does so four times a second.
    routes.serve(FastRequest(b"GET", b"/v1/serve", query=b"slot=top&url=https%3A%2F%2Fexample.com%2Fa"))

    assert (site.states.find_site(own), site.states.count_requests(own)) == (1, 3)
    site.states.get(index.by_key[own], NOON).note_site(2)
    assert site.states.find_site(own) is None


def test_a_multiplied_bid_under_the_floor_takes_no_part() -> None:
    site = Site(a_creative(1, cpm=5))
    site.states.set_multipliers({site.creatives[0].assignment.campaign_key: 0.05})

    assert site.reason()[1] == "below_floor"


def describe(prepared: PreparedSlot) -> object:
    shortlist = prepared.shortlist
    ready = [(one.candidate, one.creative, one.category) for one in shortlist.ready]
    return ready, prepared.head, prepared.placement, shortlist.reason, shortlist.removed_at, shortlist.rules


def change(site: Site, chance: Random) -> None:
    match chance.randrange(4):
        case 0:
            site.creatives = tuple(draw_creative(number, chance) for number in range(1, 4))
        case 1:
            site.categories = tuple(chance.sample((SPORTS, TENNIS, FOOD), 1))
        case 2:
            draw_approvals(site, chance)
        case _:
            site.site["floor"] = Micros(chance.choice((1, 3)) * UNIT)


@settings(max_examples=30)
@given(chances)
def test_what_is_prepared_is_what_would_be_prepared_anew(chance: Random) -> None:
    site, cache = draw_site(chance), PreparedSlots()
    index, entry, listed = site.index(), site.page(), site.listed()
    for _ in range(6):
        prepared: list[PreparedSlot] = []
        for slug in (b"top", b"side", b"end"):
            found = index.find_slot(slug)
            assert found is not None
            asked = (index, *found, entry, listed)
            prepared.append(cache.get(*asked))

            assert describe(prepared[-1]) == describe(prepare_slot(*asked))
            assert cache.get(*asked) is prepared[-1]
        assert prepared[1].shortlist is prepared[2].shortlist  # They have the same candidates and rules.

        change(site, chance)
        index = site.index() if chance.random() < 0.7 else as_new(index)
        entry = site.page() if chance.random() < 0.3 else entry
        listed = site.listed() if chance.random() < 0.3 else listed


def as_new(index: Index) -> Index:
    """The same catalog in a newer index, as after a change of something else."""
    return msgspec.structs.replace(index, version=index.version + 1)


def test_a_change_of_something_else_prepares_nothing_again() -> None:
    site, cache = Site(a_creative()), PreparedSlots()
    index, entry, listed = site.index(), site.page(), site.listed()
    found = index.find_slot(b"top")
    assert found is not None
    before = cache.get(index, *found, entry, listed)

    assert cache.get(as_new(index), *found, entry, listed) is before
