"""The kinds of the market's actors: none is stored, all are rebuilt from the market's tables."""

from functools import partial

from adloom.budgets.campaign.demand import DIRECTORY
from adloom.budgets.messages import CheckClock
from adloom.market import bidder, ranker
from adloom.market.auctioneer import auctioneer
from adloom.market.auctioneer.select import CAMPAIGNS_A_SLOT
from adloom.market.auctioneer.state import AuctioneerMessage, AuctioneerState
from adloom.market.directory import directory, distributor
from adloom.market.messages import BidderMessage, DirectoryMessage, DistributorMessage, RankerMessage
from adloom.market.routing import AUCTIONEER, BIDDER, DISTRIBUTOR, RANKER
from adloom.runtime.actors.actor import ActorKind, AnyKind
from adloom.taxonomy.iab import load_content


def make_kinds(*, campaigns_max: int = CAMPAIGNS_A_SLOT) -> list[AnyKind]:
    """Return all kinds; `campaigns_max` are listed for a slot."""
    wake = CheckClock()
    return [
        ActorKind(
            DIRECTORY.kind,
            directory.DirectoryState,
            directory.step,
            lambda _key, _now: directory.DirectoryState(),
            on_waking=wake,
            is_transient=True,
            messages=DirectoryMessage,
        ),
        ActorKind(
            DISTRIBUTOR,
            distributor.DistributorState,
            distributor.step,
            lambda _key, _now: distributor.DistributorState(),
            on_waking=wake,
            is_transient=True,
            messages=DistributorMessage,
        ),
        ActorKind(
            BIDDER,
            bidder.BidderState,
            bidder.step,
            bidder.make_bidder,
            on_waking=wake,
            is_transient=True,
            messages=BidderMessage,
        ),
        ActorKind(
            RANKER,
            ranker.RankerState,
            ranker.step,
            ranker.make_ranker,
            on_waking=wake,
            is_transient=True,
            messages=RankerMessage,
        ),
        ActorKind(
            AUCTIONEER,
            AuctioneerState,
            auctioneer.make_step(load_content().list_ancestors),
            partial(auctioneer.make_auctioneer, campaigns_max=campaigns_max),
            on_waking=wake,
            is_transient=True,
            messages=AuctioneerMessage,
        ),
    ]
