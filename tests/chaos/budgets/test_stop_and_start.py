"""What delivery processes have leased and not given is there again after a clean stop, at once."""

import pytest

from tests.chaos.budgets.crowd import asked
from tests.chaos.budgets.market import PRICE_PAISA, Market, awaited
from tests.support.product import Product, an_open_folder

pytestmark = pytest.mark.process

LEASED_SECONDS_MAX = 10.0
# Less than it takes to give up a process that did not say that it stops, not to speak of its holds.
OFFERED_SECONDS_MAX = 8.0


async def test_a_lease_is_returned_at_a_clean_stop_and_given_again_after_the_next_start() -> None:
    with an_open_folder() as folder:
        with (
            Product(folder / "data", "--empty", "--workers", "1") as product,
            product.wait_until_ready().admin() as admin,
        ):
            market = Market(product, admin)
            campaign = market.an_ad("kept", budgetDailyPaisa=PRICE_PAISA)
            await market.leased(campaign, seconds=LEASED_SECONDS_MAX)

        with Product(folder / "data", "--empty", "--workers", "1") as again:
            url = again.wait_until_ready().delivery_url
            offers = await awaited(lambda: asked(url, ["kept"]), bool, seconds=OFFERED_SECONDS_MAX)

    assert len(offers) == 1
