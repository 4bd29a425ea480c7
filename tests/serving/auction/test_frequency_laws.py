"""Whoever comes, goes or cannot be held: an auction is as if all that was looked up had been known from the start."""

import asyncio
from datetime import timedelta
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from adloom.core.money import decimal_from_micros
from adloom.events.frequency.counts import BannerFrequency
from adloom.events.frequency.windows import Window
from adloom.runtime.http.fast.fast_routes import DeferredAnswer
from adloom.serving.auction.frequency_lookup import CappedAds
from adloom.serving.index.rows import AssignmentRow, FrequencyLimit
from tests.auction.bids import units
from tests.serving.auction.counter import USER, Counter, ad_in
from tests.serving.auction.marketplace import Marketplace, a_row

TWICE = (FrequencyLimit(Window.DAY, 2),)


class Bidding(NamedTuple):
    units: int
    is_capped: bool
    is_limited: bool
    is_seen: bool
    goes: bool  # While the look-up is under way.

    def row(self, number: int) -> AssignmentRow:
        frequency = TWICE if self.is_capped else ()
        return a_row(number, units(str(self.units)), frequency=frequency, is_limited=self.is_limited)


ALL_BIDDING = st.lists(
    st.builds(Bidding, st.integers(1, 12), st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    min_size=1,
    max_size=7,
)


@given(ALL_BIDDING, st.booleans(), st.booleans(), st.sampled_from(CappedAds))
def test_an_auction_is_exact_and_what_is_not_known_is_as_the_operator_has_decided(
    bidding: list[Bidding],
    is_recorded: bool,  # noqa: FBT001 - drawn
    is_ended: bool,  # noqa: FBT001 - drawn
    when_away: CappedAds,
) -> None:
    rows = {number: one.row(number) for number, one in enumerate(bidding, 1)}
    keys = {str(row.banner_id): number for number, row in rows.items()}
    capped = {number for number, one in enumerate(bidding, 1) if one.is_capped}
    seen = {number for number in capped if bidding[number - 1].is_seen}
    counter = Counter(*rows.values(), sample_rate=float(is_recorded), when_away=when_away)
    counter.grant(1_000_000)
    counter.counts.shown[USER] = [
        BannerFrequency(Window.DAY, str(rows[number].banner_id), 2) for number in seen
    ]
    if is_ended:
        counter.clock.advance(timedelta(hours=2))  # All leases end, and it is not reported yet.

    won = asyncio.run(winner_and_price(counter, bidding))

    look = counter.frequency
    unknown = look.offered_unknown + look.withheld_unknown
    assert len(counter.counts.asked) <= 1
    assert unknown <= (not is_recorded)
    absent = seen
    if unknown:
        looked_up = {keys[banner] for banner in counter.counts.banners[0]}
        absent = capped - looked_up if when_away is CappedAds.WITHHOLD else set[int]()
    out = [number for number in rows if counter.states.find_reason(number) is not None]
    win = Marketplace(*rows.values()).auction(seen_enough=frozenset(absent), unreserved=frozenset(out))
    assert won == (
        win and (str(rows[win.bidder.banner_key].banner_id), float(decimal_from_micros(win.final)))
    )


async def winner_and_price(counter: Counter, bidding: list[Bidding]) -> tuple[str, float] | None:
    answer = counter.ask()
    if isinstance(answer, DeferredAnswer):
        counter.states.mark_changed({number: "budget" for number, one in enumerate(bidding, 1) if one.goes})
        answer = await answer
    ad = ad_in(answer)
    return None if ad is None else (ad["adId"], ad["finalPrice"])
