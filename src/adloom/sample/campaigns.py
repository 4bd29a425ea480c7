"""Why the sample shows what: a campaign for every state that there is, and for every way to pay."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from adloom.sample.advertisers import FERNWAY, KETTLE, LUMEN, MEADOW, PAPER_MOON

NONE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})


class Rule(msgspec.Struct, frozen=True):
    """One condition of a campaign."""

    type: str
    operator: str
    value: list[str] | list[int] | bool


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign: what it pays, since when and until when in days from the load, and what it shows where."""

    key: str
    name: str
    why: str
    advertiser: str | None
    status: str = "active"
    days: tuple[int | None, int | None] = (None, None)
    bid_type: str = "cpm"
    bid: float | None = None
    daily_paisa: int | None = None
    total_paisa: int | None = None
    pacing: str = "Smooth"
    impression_cap: int | None = None
    priority: int = 0
    rules: tuple[Rule, ...] = ()
    shows: Mapping[str, tuple[str, ...]] = NONE
    is_fallback: bool = False
    is_deleted: bool = False


CAMPAIGNS: Final = (
    Campaign(
        key="autumn",
        name="Autumn at Meadow & Oak",
        why="Runs, with a daily budget that is spread over the day.",
        advertiser=MEADOW,
        days=(-12, 40),
        bid=18,
        daily_paisa=9_000,
        total_paisa=300_000,
        priority=5,
        shows={
            "hedgerow-top": ("autumn", "wool"),
            "hedgerow-article-top": ("autumn",),
            "hedgerow-bar": ("mug",),
        },
    ),
    Campaign(
        key="tea",
        name="A tea a day",
        why="Runs, as fast as it can, until its small daily budget is gone.",
        advertiser=KETTLE,
        days=(-30, 30),
        bid=14,
        daily_paisa=220,
        total_paisa=20_000,
        pacing="Accelerated",
        priority=4,
        shows={"hedgerow-top": ("tea",), "hedgerow-aside": ("leaves",)},
    ),
    Campaign(
        key="lamps",
        name="Reading light",
        why="Runs until it was seen 4,000 times.",
        advertiser=LUMEN,
        days=(-7, 60),
        bid=11,
        total_paisa=8_000,
        impression_cap=4_000,
        shows={"hedgerow-aside": ("lamp",), "hedgerow-article-aside": ("lamp",)},
    ),
    Campaign(
        key="walks",
        name="Four days, no hurry",
        why="Runs for readers of English on these islands and on the way, from six in the morning on.",
        advertiser=FERNWAY,
        days=(-3, 25),
        bid=9,
        rules=(
            Rule("country", "in", ["GB", "IE", "US"]),
            Rule("language", "in", ["en"]),
            Rule("hour_of_day", "between", [5, 23]),
        ),
        shows={"hedgerow-between": ("walks",)},
    ),
    Campaign(
        key="breakfast",
        name="Slow breakfasts",
        why="Runs on the mornings of Saturday and Sunday, by the schedule of its banner.",
        advertiser=MEADOW,
        bid=10,
        shows={"hedgerow-between": ("breakfast",)},
        priority=9,
    ),
    Campaign(
        key="feed-books",
        name="Winter reads, in the feed",
        why="Bids for a thousand impressions.",
        advertiser=PAPER_MOON,
        bid=9,
        daily_paisa=6_000,
        shows={"hedgerow-feed": ("books",), "hedgerow-app": ("books",)},
    ),
    Campaign(
        key="feed-tea",
        name="The teapot, by the click",
        why="Bids for a click, and is shown to nobody more than six times a day.",
        advertiser=KETTLE,
        bid_type="cpc",
        bid=0.42,
        shows={"hedgerow-feed": ("teapot",), "hedgerow-app": ("teapot",)},
    ),
    Campaign(
        key="feed-lantern",
        name="The lantern, by the click",
        why="Bids for a click, by phone and tablet only.",
        advertiser=LUMEN,
        bid_type="cpc",
        bid=0.55,
        daily_paisa=4_000,
        pacing="Accelerated",
        rules=(Rule("device", "in", ["mobile", "tablet"]),),
        shows={"hedgerow-feed": ("lantern",), "hedgerow-app": ("lantern",)},
    ),
    Campaign(
        key="feed-walks",
        name="Walks, in the feed",
        why="Bids for a thousand impressions, where nobody else bids much.",
        advertiser=FERNWAY,
        bid=6.5,
        rules=(Rule("country", "not_in", ["US"]),),
        shows={"hedgerow-feed": ("boots",)},
    ),
    Campaign(
        key="shelves",
        name="New on the shelves",
        why="The shop's own, on its own pages: it pays nothing.",
        advertiser=MEADOW,
        shows={
            "oak-pair": ("candle", "basket"),
            "oak-grid": ("chair", "hall", "throw", "board"),
            "oak-product": ("throw", "basket"),
        },
    ),
    Campaign(
        key="letters",
        name="A letter in November",
        why="The corner of every shelf.",
        advertiser=MEADOW,
        shows={"oak-popup": ("newsletter",)},
    ),
    Campaign(
        key="gifts",
        name="The winter catalogue",
        why="The page before the long read.",
        advertiser=MEADOW,
        days=(-2, 35),
        bid=30,
        daily_paisa=4_000,
        shows={"hedgerow-long-read": ("gifts",)},
    ),
    Campaign(
        key="house",
        name="The Hedgerow, by post",
        why="The magazine's own: it fills what is left.",
        advertiser=None,
        is_fallback=True,
        shows={
            "hedgerow-top": ("letters-wide",),
            "hedgerow-between": ("letters",),
            "hedgerow-aside": ("present", "letters"),
            "hedgerow-bar": ("letters-bar",),
            "hedgerow-article-top": ("letters-wide",),
            "hedgerow-article-aside": ("letters",),
        },
    ),
    Campaign(
        key="markets",
        name="Christmas markets",
        why="Begins in nine days.",
        advertiser=MEADOW,
        status="scheduled",
        days=(9, 45),
        bid=20,
        daily_paisa=8_000,
        shows={"hedgerow-top": ("markets",)},
    ),
    Campaign(
        key="bulbs",
        name="Spring bulbs",
        why="Nobody has decided yet.",
        advertiser=MEADOW,
        status="draft",
        bid=12,
        shows={"hedgerow-article-aside": ("bulbs",)},
    ),
    Campaign(
        key="candles",
        name="Candle evenings",
        why="Paused: the wax is out.",
        advertiser=MEADOW,
        status="paused",
        days=(-20, 20),
        bid=15,
        daily_paisa=2_000,
        shows={"hedgerow-article-aside": ("candle",)},
    ),
    Campaign(
        key="picnics",
        name="Summer picnics",
        why="Over since the summer.",
        advertiser=MEADOW,
        status="ended",
        days=(-150, -60),
        bid=16,
        total_paisa=120_000,
        shows={"hedgerow-top": ("picnic",)},
    ),
    Campaign(
        key="chairs",
        name="Garden chairs",
        why="Cancelled: it rained.",
        advertiser=MEADOW,
        status="cancelled",
        bid=10,
        shows={"hedgerow-aside": ("chair",)},
    ),
    Campaign(
        key="harvest",
        name="Harvest supper",
        why="Deleted, and can be restored.",
        advertiser=FERNWAY,
        status="paused",
        bid=8,
        shows={"hedgerow-between": ("walks",)},
        is_deleted=True,
    ),
)
