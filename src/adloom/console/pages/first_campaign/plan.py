"""The choices made in the guide, and the requests that carry them out."""

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from adloom.console import strings
from adloom.console.client import ApiClient, Json
from adloom.console.components.banner_preview import BANNERS_ABREAST

STEPS: Final = tuple(strings.FIRST_CAMPAIGN_PARTS)
# Heavier than other banners, so that the new ad is shown.
WEIGHT: Final = 1_000
SLUG_LENGTH_MAX: Final = 60


class CampaignPlan:
    """The choices so far, and what was created from them: a second try continues where the first failed."""

    def __init__(self) -> None:
        self.placement: Json = {}
        self.banner: Json = {}
        self.campaign: Json = {}
        self.made: dict[str, Json] = {}

    @property
    def layout(self) -> str:
        return self.placement["layoutType"]

    async def carry_out(self, api: ApiClient, on_step: Callable[[str], None]) -> None:
        """Create what does not exist yet, in order, and report each finished step."""
        for step in STEPS:
            if step not in self.made:
                self.made[step] = await self._do(api, step)
            on_step(step)

    async def _do(self, api: ApiClient, step: str) -> Json:
        match step:
            case "placement":
                return (
                    self.placement
                    if "id" in self.placement
                    else await api.post("/admin/placements", self.placement)
                )
            case "banner":
                return await api.post("/admin/banners", self.banner)
            case "campaign":
                return await api.post("/admin/campaigns", self.campaign)
            case _:
                return await self._join(api, step)

    async def _join(self, api: ApiClient, step: str) -> Json:
        campaign = f"/admin/campaigns/{self.made['campaign']['id']}"
        placement_id = self.made["placement"]["id"]
        match step:
            case "link":
                return await api.post(f"{campaign}/placements", {"placementId": placement_id})
            case "assignment":
                body = {"bannerId": self.made["banner"]["id"], "weight": WEIGHT}
                return await api.post(f"{campaign}/placements/{placement_id}/banners", body)
            case _:
                return await api.patch(f"{campaign}/activate")


def describe_placement(label: str, layout: str) -> Json:
    return {
        "label": label,
        "slug": make_slug(label),
        "layoutType": layout,
        "maxBanners": BANNERS_ABREAST.get(layout, 1),
        "allowPartialRender": True,
    }


def make_slug(label: str) -> str:
    """Make a slug of a label; a label without Latin letters or digits becomes `place`."""
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:SLUG_LENGTH_MAX].strip("-") or "place"
