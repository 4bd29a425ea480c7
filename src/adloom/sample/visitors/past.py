"""The day before the load: what simulated visitors would have done.

Programs may report events of up to 24 hours ago, and this one does so once. Without an offer's token they
count but cost nothing, so spending begins with the first real request.
"""

# pure

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from adloom.core.random import Chance
from adloom.sample.content.catalog import BANNER_BY_KEY, CAMPAIGNS, SLOT_BY_SLUG
from adloom.sample.manifest import Manifest
from adloom.sample.visitors.visitors import VISITS_PER_SECOND, compute_busyness, pick, pick_visitor

Event = dict[str, str]

HOURS: Final = 23  # An event that is older than a day when it arrives would count as of now.
VIEWS_PER_VISIT: Final = 1.6
BATCH_EVENTS: Final = 500
CLICKED_AFTER: Final = timedelta(seconds=5)


def draw_past_events(manifest: Manifest, chance: Chance) -> Iterator[Event]:
    """Yield events, oldest first; with the same chance they are the same, by name too, and so count once."""
    shown = [
        ((campaign.key, slug, key), 1.0 / (1 + rank))
        for campaign in CAMPAIGNS
        if campaign.status == "active" and not campaign.is_deleted and campaign.impression_cap is None
        for slug, keys in campaign.shows.items()
        if not campaign.is_fallback and SLOT_BY_SLUG[slug].auction_type is None
        for rank, key in enumerate(keys)
    ]
    load, number = f"sample:{manifest.loaded_at:%Y%m%d%H%M%S}", 0
    for hour in range(HOURS, 0, -1):
        begins_at = manifest.loaded_at - timedelta(hours=hour)
        views = round(3600 * VISITS_PER_SECOND * VIEWS_PER_VISIT * compute_busyness(begins_at))
        for view in range(views):
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
