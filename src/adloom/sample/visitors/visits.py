"""What a simulated visitor does: opens a page, sees some of its ads, sometimes clicks one; and what visitors would have done on the day before the load."""

# pure

import itertools
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from adloom.core.random import Chance
from adloom.sample.content.articles import ARTICLES, DEPARTMENTS, PRODUCTS
from adloom.sample.content.catalog import BANNER_BY_KEY, BANNERS, CAMPAIGNS, SLOT_BY_SLUG, SampleBanner
from adloom.sample.manifest import Manifest
from adloom.sample.pages.pages import SHOP, list_sample_pages
from adloom.sample.visitors.visitors import (
    VISITS_PER_SECOND,
    SampleVisitor,
    compute_busyness,
    pick,
    pick_visitor,
)

# Probability that a slot comes into view, by its position on the page; the last holds for all below.
SEEN: Final = (0.94, 0.7, 0.6, 0.45)
# Probability that a banner of a slot is seen, by its position in the slot.
SEEN_IN_SLOT: Final = (1.0, 0.75, 0.55, 0.5)
# How often a banner about something is clicked by who reads about that, and by others.
CLICKED_MORE: Final = 2.5
CLICKED_LESS: Final = 0.4
FIRST_LOOK_SECONDS: Final = (1.0, 4.0)
THINKING_SECONDS: Final = (1.5, 9.0)


class VisitedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that can be opened: the slots it asks for at once, or the one that is auctioned."""

    path: str
    address: str | None = None  # By which it is known; an app has none.
    section: str | None = None  # Of the magazine, if it is an article.
    slots: tuple[str, ...] = ()
    auctioned: str | None = None


class SampleVisit(msgspec.Struct, frozen=True, kw_only=True):
    """One visitor opens one page."""

    visitor: SampleVisitor
    sight: VisitedPage


class SeenOffer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An ad in delivery's answer, in the fields that a page uses."""

    id: str
    campaign_id: str
    tracking_token: str
    impression_url: str
    click_url: str


class Reaction(msgspec.Struct, frozen=True, kw_only=True):
    """What a visitor does with an offer, and how long after it arrived."""

    offer: SeenOffer
    seen_after_seconds: float
    clicked_after_seconds: float | None


def _draw_sights() -> Iterator[tuple[VisitedPage, float]]:
    yield _find_page("/sample"), 0.3
    yield from ((_find_page(one.path, section=one.section), 0.26 / len(ARTICLES)) for one in ARTICLES)
    yield VisitedPage(path="/app/stories", auctioned="hedgerow-feed"), 0.12
    yield VisitedPage(path="/app/posts", auctioned="hedgerow-app"), 0.1
    yield _find_page(SHOP), 0.11
    yield from ((_find_page(one.path), 0.06 / len(DEPARTMENTS)) for one in DEPARTMENTS)
    yield from ((_find_page(product.path), 0.07 / len(PRODUCTS)) for product in PRODUCTS)


def _find_page(path: str, *, section: str | None = None) -> VisitedPage:
    page = list_sample_pages()[path]
    return VisitedPage(path=path, address=page.address, section=section, slots=page.slots)


SIGHTS: Final = tuple(_draw_sights())


def pick_visit(chance: Chance) -> SampleVisit:
    return SampleVisit(visitor=pick_visitor(chance), sight=pick(SIGHTS, chance.random()))


def list_ctrs(manifest: Manifest, section: str | None = None) -> dict[str, float]:
    """Return the click rates of the sample's own banners by id, of the readers of a section."""
    ids = manifest.get_ids("banners")
    return {ids[one.key]: one.ctr * _weigh(one, section) for one in BANNERS if one.key in ids}


def _weigh(banner: SampleBanner, section: str | None) -> float:
    if not banner.liked_in:
        return 1.0
    return CLICKED_MORE if section in banner.liked_in else CLICKED_LESS


def react_to(
    offers: Sequence[Sequence[SeenOffer]], ctrs: Mapping[str, float], chance: Chance
) -> Iterator[Reaction]:
    """Decide what a visitor does with what a page shows, slot by slot.

    An ad that is not the sample's is left alone: its figures are of real visitors.
    """
    for place, slot in enumerate(offers):
        if chance.random() >= SEEN[min(place, len(SEEN) - 1)]:
            continue
        for rank, offer in enumerate(slot):
            if offer.id not in ctrs or chance.random() >= SEEN_IN_SLOT[min(rank, len(SEEN_IN_SLOT) - 1)]:
                continue
            seen = chance.uniform(*FIRST_LOOK_SECONDS) + place
            is_clicked = chance.random() < ctrs[offer.id]
            yield Reaction(
                offer=offer,
                seen_after_seconds=seen,
                clicked_after_seconds=seen + chance.uniform(*THINKING_SECONDS) if is_clicked else None,
            )


Event = dict[str, str]

HOURS: Final = 23  # An event that is older than a day when it arrives would count as of now.
PASSES: Final = 32
VIEWS_PER_VISIT: Final = 1.6
BATCH_EVENTS: Final = 500
CLICKED_AFTER: Final = timedelta(seconds=5)


def draw_past_events(manifest: Manifest, chance: Chance) -> Iterator[Event]:
    """Yield events; with the same chance they are the same, by name too, and so count once.

    They come in passes over the whole day: while they are reported, for half a minute, charts grow but have their shape.
    """
    shown = [
        ((campaign.key, slug, key), 1.0 / (1 + rank))
        for campaign in CAMPAIGNS
        if campaign.status == "active" and not campaign.is_deleted and campaign.impression_cap is None
        for slug, keys in campaign.shows.items()
        if not campaign.is_fallback and SLOT_BY_SLUG[slug].auction_type is None
        for rank, key in enumerate(keys)
    ]
    load, number = f"sample:{manifest.loaded_at:%Y%m%d%H%M%S}", 0
    for turn, hour in itertools.product(range(PASSES), range(HOURS, 0, -1)):
        begins_at = manifest.loaded_at - timedelta(hours=hour)
        views = round(3600 * VISITS_PER_SECOND * VIEWS_PER_VISIT * compute_busyness(begins_at))
        for view in range(turn, views, PASSES):
            number += 1
            campaign, slug, key = pick(shown, chance.random())
            seen_at = begins_at + timedelta(hours=(view + chance.random()) / views)
            event = {
                "bannerId": manifest.get_ids("banners")[key],
                "placementId": manifest.get_ids("placements")[slug],
                "campaignId": manifest.get_ids("campaigns")[campaign],
                **_draw_circumstances(chance),
            }
            seen = {"occurredAt": min(seen_at, manifest.loaded_at).isoformat(), **event}
            yield {"type": "impression", "correlationId": f"{load}:{number}:impression", **seen}
            if chance.random() < BANNER_BY_KEY[key].ctr:
                clicked_at = min(seen_at + CLICKED_AFTER, manifest.loaded_at)
                seen["occurredAt"] = clicked_at.isoformat()
                yield {"type": "click", "correlationId": f"{load}:{number}:click", **seen}


def _draw_circumstances(chance: Chance) -> Event:
    visitor = pick_visitor(chance)
    agent = visitor.user_agent
    device = "tablet" if "iPad" in agent else "mobile" if "Mobile" in agent else "desktop"
    return {"deviceType": device, "countryCode": visitor.country}
