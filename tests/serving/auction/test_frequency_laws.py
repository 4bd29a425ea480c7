"""An auction with a look-up equals one that had all counts from the start, whatever changes meanwhile."""

import asyncio
from datetime import timedelta
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from adloom.core.money import decimal_from_micros
from adloom.events.frequency.counts import BannerFrequency
from adloom.events.frequency.windows import Window
from adloom.runtime.http.fast.fast_routes import DeferredAnswer
from adloom.serving.eligibility.frequency_lookup import CappedAds
from adloom.serving.index.rows import AssignmentRow, FrequencyLimit
from tests.auction.bids import units
from tests.serving.auction.auction_server import USER, AuctionServer, read_ad
from tests.serving.auction.marketplace import Marketplace, a_row

TWICE = (FrequencyLimit(Window.DAY, 2),)


class RandomBid(NamedTuple):
    units: int
    is_capped: bool
    is_limited: bool
    is_seen: bool
    is_removed: bool  # While the look-up is under way.

    def row(self, number: int) -> AssignmentRow:
        frequency = TWICE if self.is_capped else ()
        return a_row(number, units(str(self.units)), frequency=frequency, is_limited=self.is_limited)


RANDOM_BIDS = st.lists(
    st.builds(RandomBid, st.integers(1, 12), st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    min_size=1,
    max_size=7,
)


@given(RANDOM_BIDS, st.booleans(), st.booleans(), st.sampled_from(CappedAds))
def test_an_auction_equals_one_with_known_counts_and_unknown_counts_follow_the_setting(
    bids: list[RandomBid],
    is_recorded: bool,  # noqa: FBT001 - drawn
    is_ended: bool,  # noqa: FBT001 - drawn
    when_away: CappedAds,
) -> None:
    rows = {number: one.row(number) for number, one in enumerate(bids, 1)}
    keys = {str(row.banner_id): number for number, row in rows.items()}
    capped = {number for number, one in enumerate(bids, 1) if one.is_capped}
    seen = {number for number in capped if bids[number - 1].is_seen}
    server = AuctionServer(*rows.values(), sample_rate=float(is_recorded), when_away=when_away)
    server.grant(1_000_000)
    server.counts.shown[USER] = [
        BannerFrequency(Window.DAY, str(rows[number].banner_id), 2) for number in seen
    ]
    if is_ended:
        server.clock.advance(timedelta(hours=2))  # All leases have ended, and that is not reported yet.

    won = asyncio.run(winner_and_price(server, bids))

    lookup = server.frequency
    unknown = lookup.offered_unknown + lookup.withheld_unknown
    assert len(server.counts.asked) <= 1
    assert unknown <= (not is_recorded)
    absent = seen
    if unknown:
        looked_up = {keys[banner] for banner in server.counts.banners[0]}
        absent = capped - looked_up if when_away is CappedAds.WITHHOLD else set[int]()
    out = [number for number in rows if server.states.find_reason(number) is not None]
    win = Marketplace(*rows.values()).auction(seen_enough=frozenset(absent), unreserved=frozenset(out))
    assert won == (
        win and (str(rows[win.bidder.banner_key].banner_id), float(decimal_from_micros(win.final)))
    )


async def winner_and_price(server: AuctionServer, bids: list[RandomBid]) -> tuple[str, float] | None:
    answer = server.ask()
    if isinstance(answer, DeferredAnswer):
        server.states.mark_changed({number: "budget" for number, one in enumerate(bids, 1) if one.is_removed})
        answer = await answer
    ad = read_ad(answer)
    return None if ad is None else (ad["adId"], ad["finalPrice"])
