"""Where the sample shows ads: its publishers, their sites, the placements on their pages."""

from typing import Final

import msgspec

HEDGEROW: Final = "hedgerow"
OAK: Final = "oak"
FEED_TYPE: Final = "hedgerow-feed"
APP_TYPE: Final = "hedgerow-app"
FREE_SLUG: Final = "hedgerow-yours"


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A domain, and the publisher whose only one it is."""

    key: str
    publisher: str
    domain: str
    name: str


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A placement; what bids on it and how it is priced matters only where it is auctioned."""

    slug: str
    label: str
    layout: str
    site: str
    size: tuple[int, int]
    banners_max: int = 1
    is_active: bool = True
    auction_type: str | None = None
    floor_cpm: float = 0
    scoring: str = "heuristic"
    notes: str | None = None
    # Kept free: a picture stands there until somebody puts an ad of their own on it.
    is_free: bool = False


SITES: Final = (
    Site(key=HEDGEROW, publisher="The Hedgerow", domain="hedgerow.example", name="The Hedgerow"),
    Site(key=OAK, publisher="Meadow & Oak", domain="meadow-and-oak.example", name="Meadow & Oak, the shop"),
)
SLOTS: Final = (
    Slot(
        slug="hedgerow-top",
        label="Front page, across the top",
        layout="full_slider",
        site=HEDGEROW,
        size=(1200, 300),
        banners_max=3,
    ),
    Slot(
        slug="hedgerow-between",
        label="Front page, between two stories",
        layout="inline_card",
        site=HEDGEROW,
        size=(600, 400),
    ),
    Slot(
        slug=FREE_SLUG,
        label="Front page, kept free for your first ad",
        layout="inline_card",
        site=HEDGEROW,
        size=(600, 600),
        is_free=True,
        notes="Nothing of the sample is shown here: link a campaign of your own to it.",
    ),
    Slot(
        slug="hedgerow-aside",
        label="Front page, beside the stories",
        layout="sidebar_stack",
        site=HEDGEROW,
        size=(600, 400),
        banners_max=2,
    ),
    Slot(
        slug="hedgerow-bar",
        label="Front page, at the foot of the window",
        layout="sticky_bar",
        site=HEDGEROW,
        size=(1200, 120),
    ),
    Slot(
        slug="hedgerow-article-top",
        label="Article, above the text",
        layout="full_static",
        site=HEDGEROW,
        size=(1200, 300),
    ),
    Slot(
        slug="hedgerow-article-aside",
        label="Article, beside the text",
        layout="sidebar_single",
        site=HEDGEROW,
        size=(600, 600),
    ),
    Slot(
        slug="hedgerow-long-read",
        label="Long read, before it begins",
        layout="interstitial",
        site=HEDGEROW,
        size=(800, 600),
    ),
    Slot(
        slug="hedgerow-feed",
        label="App, after a story (auctioned)",
        layout="inline_card",
        site=HEDGEROW,
        size=(600, 400),
        auction_type=FEED_TYPE,
        floor_cpm=2,
        notes="Asked for by the magazine's app, which is no page.",
    ),
    Slot(
        slug="hedgerow-app",
        label="App, between posts (auctioned)",
        layout="inline_card",
        site=HEDGEROW,
        size=(600, 400),
        auction_type=APP_TYPE,
        floor_cpm=1.5,
        scoring="learned",
        notes="Asked for by the magazine's app, which is no page.",
    ),
    Slot(
        slug="oak-pair",
        label="Shop, two beside each other",
        layout="half_pair",
        site=OAK,
        size=(600, 400),
        banners_max=2,
    ),
    Slot(
        slug="oak-grid",
        label="Shop, four under the shelves",
        layout="quarter_grid",
        site=OAK,
        size=(500, 500),
        banners_max=4,
    ),
    Slot(
        slug="oak-popup",
        label="Shelf, a letter in the corner",
        layout="popup",
        site=OAK,
        size=(600, 400),
    ),
    Slot(
        slug="oak-product",
        label="Product, beside the picture",
        layout="sidebar_single",
        site=OAK,
        size=(600, 400),
    ),
    Slot(
        slug="oak-old-corner",
        label="Shop, the old corner",
        layout="sidebar_single",
        site=OAK,
        size=(600, 600),
        is_active=False,
        notes="Switched off when the shop was painted.",
    ),
)
SLOT_BY_SLUG: Final = {slot.slug: slot for slot in SLOTS}
SLUGS: Final = tuple(SLOT_BY_SLUG)
