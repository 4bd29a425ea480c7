"""Law: every active campaign is in every bidder of its categories within 60 s, and no other is."""

from uuid import UUID

from adloom.budgets.campaign.demand import DIRECTORY, CampaignReady
from adloom.budgets.messages import CheckClock
from adloom.core.ids import SiteId
from adloom.market.messages import AllDemand, CategoryDemand
from adloom.market.routing import STRIPES, find_stripe, make_bidder_address, make_distributor_address
from simulation.market import CATEGORIES, Campaigns, Network, find_violations, simulate_market
from tests.market.builders import a_demand, campaign_id
from tests.support.for_each import for_each, seeds


def bidders_know(network: Network, category: str, stripe: int) -> dict[object, float]:
    state = network.states.get(make_bidder_address(category, stripe))
    return {} if state is None else {one.campaign_id: one.max_cpm for one in state.campaigns}


def assert_all_know(network: Network, campaigns: Campaigns) -> None:
    for category in CATEGORIES:
        wanted = {
            one.campaign_id: one.max_cpm for one in campaigns.active.values() if category in one.categories
        }
        for stripe in range(STRIPES):
            assert bidders_know(network, category, stripe) == wanted, (category, stripe)


@for_each("seed", seeds(8))
def test_with_half_of_all_messages_lost_a_new_campaign_is_known_everywhere_within_a_minute(seed: int) -> None:
    network = Network(seed)
    campaigns = Campaigns(network)
    network.send(DIRECTORY, CheckClock(), is_certain=True)
    network.run(1)
    network.loss, network.repetition = 0.5, 0.5

    demand = a_demand(1, *CATEGORIES)
    campaigns.active[demand.campaign_id] = demand
    network.send(DIRECTORY, CampaignReady(demand), is_certain=True)
    network.run(59)

    assert_all_know(network, campaigns)


def test_what_thousands_of_campaigns_bring_at_once_is_pushed_once_a_category() -> None:
    network = Network(1)
    demands = tuple(a_demand(number, CATEGORIES[number % 4]) for number in range(2_000))
    network.loss = 1.0

    network.step(DIRECTORY, AllDemand(1, demands))

    state = network.states[DIRECTORY]
    assert {category: len(state.by_category[category]) for category in CATEGORIES} == dict.fromkeys(
        CATEGORIES, 500
    )
    assert network.versions == dict.fromkeys(CATEGORIES, 1)


@for_each("seed", seeds(16))
def test_whatever_is_lost_all_bidders_know_all_campaigns_within_a_minute(seed: int) -> None:
    outcome = simulate_market(seed)

    assert outcome.violations == ()
    assert outcome.figures["campaigns that are active at the end"]


def test_the_world_of_the_market_finds_a_bidder_that_misses_a_campaign() -> None:
    network = Network(1)
    campaigns = Campaigns(network)
    network.send(DIRECTORY, CheckClock(), is_certain=True)
    network.loss = 1.0
    campaigns.put(a_demand(1, *CATEGORIES))
    network.run(60)

    assert len(list(find_violations(network, campaigns))) == len(CATEGORIES) * STRIPES


def test_a_seed_gives_the_same_run_of_the_market() -> None:
    assert simulate_market(5) == simulate_market(5)
    assert simulate_market(5).digest != simulate_market(6).digest


def test_a_new_campaign_is_known_everywhere_within_a_tenth_of_a_second() -> None:
    network = Network(1)
    campaigns = Campaigns(network)

    campaigns.put(a_demand(1, "483", "539"))
    network.run(0.1)

    assert_all_know(network, campaigns)


def test_a_late_older_push_does_not_undo_a_newer_one() -> None:
    network = Network(1)
    campaigns = Campaigns(network)
    campaigns.put(a_demand(1, "483", cpm=5))
    network.run(1)
    old = network.states[make_bidder_address("483", 0)]
    campaigns.put(a_demand(1, "483", cpm=7))
    network.run(1)

    network.step(make_bidder_address("483", 0), CategoryDemand("483", old.version, old.campaigns))

    assert bidders_know(network, "483", 0) == {campaign_id(1): 7_000_000}


def test_a_boot_registration_is_no_edit() -> None:
    network = Network(1)
    campaigns = Campaigns(network)
    campaigns.put(a_demand(1))
    network.run(1)
    rows = len(network.rows)
    version = network.versions["483"]

    network.restart_all()
    network.run(1)
    campaigns.put(a_demand(1))
    network.run(1)

    assert network.versions["483"] == version
    assert len(network.rows) == rows


def test_a_distributor_tells_five_categories_at_once_and_of_each_the_newest() -> None:
    network, told = Network(1), make_distributor_address("483")
    categories = [str(number) for number in range(100) if make_distributor_address(str(number)) == told][:8]

    for category in categories:
        network.step(told, CategoryDemand(category, 1, ()))
        network.step(told, CategoryDemand(category, 2, ()))

    state = network.states[told]
    assert len(state.pushes) == 5
    assert {one.version for one in state.waiting.values()} == {2}
    assert len(state.waiting) == 8  # The second version of those under way waits too.

    network.run(1)

    assert network.states[told].waiting == network.states[told].pushes == {}
    assert {network.states[make_bidder_address(category, 4)].version for category in categories} == {2}


def test_a_bidder_that_does_not_answer_holds_nothing_up() -> None:
    network, told = Network(1), make_distributor_address("483")
    network.loss = 1.0
    for number in range(5):
        network.step(told, CategoryDemand(str(number), 1, ()))
    network.run(4)
    assert len(network.states[told].pushes) == 5

    network.run(2)
    network.loss = 0.0
    network.step(told, CategoryDemand("9", 1, ()))
    network.run(1)

    assert network.states[told].unanswered == 5
    assert network.states[make_bidder_address("9", 0)].version == 1


def test_who_is_responsible_is_the_same_on_every_machine_and_in_every_run() -> None:
    assert [find_stripe(SiteId(UUID(int=number))) for number in range(8)] == [3, 1, 1, 0, 3, 4, 0, 0]
    assert [make_distributor_address(one).key for one in CATEGORIES] == ["3", "1", "2", "7"]
