"""A real product with ads that cost something: making them, seeing them, and what was charged for them."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple, TypeVar
from uuid import UUID

import asyncpg
import httpx

from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.kinds import make_campaign_kind
from adloom.budgets.messages import MoneyKind
from adloom.runtime.postgres import POSTGRES_AWAY
from tests.chaos.budgets.crowd import Offer, ask_all, asked
from tests.support.days import zone_at_noon
from tests.support.product import Product

# 500 a thousand is 0.50 an impression.
CPM = 500
PRICE_PAISA = 50
PRICE_MICROS = 500_000
POLL_SECONDS = 0.2
READ_SECONDS = (
    0.02  # Between two requests of a reader, so that the processes have the machine for themselves.
)
TENNIS = "539"

ENTRIES = """
    SELECT kind, request_id, slot, amount_micros FROM money_entries WHERE campaign_id = ANY($1::uuid[])
     ORDER BY array_position($1::uuid[], campaign_id), id
"""
STATES = "SELECT state, format FROM brain_states WHERE kind = 'campaign' AND right(key, 36) = ANY($1::text[])"


Seen = TypeVar("Seen")


class Entry(NamedTuple):
    """A row of the money ledger; a release is of no single offer."""

    kind: str
    request_id: str
    slot: int | None
    amount: int


class Market:
    """One product, and an admin of it."""

    def __init__(self, product: Product, admin: httpx.Client) -> None:
        self.product = product
        self.admin = admin

    def made(self, path: str, **body: object) -> str:
        """Make something, and give its id."""
        answer = self.admin.post(path, json=body)
        assert answer.status_code == HTTPStatus.CREATED, answer.text
        return answer.json()["id"]

    def changed(self, path: str, body: Mapping[str, object] | None = None, *, method: str = "PATCH") -> float:
        """Change something, and tell when that was known."""
        answer = self.admin.request(method, path, json=body)
        assert answer.status_code == HTTPStatus.OK, answer.text
        return time.monotonic()

    def an_ad(self, slug: str, **fields: object) -> str:
        """Make everything that one ad needs, and give the id of its campaign."""
        return self.ads([slug], **fields)[0]

    def ads(self, slugs: Sequence[str], **fields: object) -> list[str]:
        """Make an ad for each slug by one write, as every process takes a new index for each, and give the campaigns."""
        costs = {"pacingStrategy": "Accelerated", "bidAmount": CPM, "timezone": zone_at_noon()}
        banner = {
            "primaryImageUrl": "https://cdn.example.com/a.png",
            "ctaUrl": "https://shop.example.com/",
        }
        document = {
            "placements": [{"slug": slug, "label": slug, "layoutType": "full_static"} for slug in slugs],
            "banners": [{"key": slug, "title": slug, **banner} for slug in slugs],
            "campaigns": [
                {"key": slug, "name": slug, "status": "active", **costs, **fields} for slug in slugs
            ],
            "links": [{"campaignId": slug, "placementId": slug} for slug in slugs],
            "assignments": [{"campaignId": slug, "placementId": slug, "bannerId": slug} for slug in slugs],
        }
        answer = self.admin.post("/admin/import", json=document)
        assert answer.status_code == HTTPStatus.OK, answer.text
        made = {one["key"]: one["id"] for one in answer.json()["changes"] if one["kind"] == "campaign"}
        return [made[slug] for slug in slugs]

    def a_page(self, name: str, **fields: object) -> tuple[str, str]:
        """Make a page with a contextual slot and a campaign for it; give the path to ask, and the campaign."""
        domain = f"{name}.test"
        site = self.made(
            "/admin/sites",
            domain=domain,
            cronSchedule=None,
            approvalMode="automatic",
            auctionMode="first_price",
        )
        self.made(
            "/admin/placements",
            slug=name,
            label=name,
            layoutType="sidebar_single",
            delivery="contextual",
            siteId=site,
        )
        given = {"url": f"https://{domain}/a", "categories": [{"id": TENNIS, "confidence": 0.9}]}
        self.changed(f"/admin/sites/{site}/pages", given, method="POST")
        banner = self.made(
            "/admin/banners",
            title=name,
            primaryImageUrl="https://cdn.example.com/a.png",
            ctaUrl="https://shop.example.com/",
        )
        costs = {"pacingStrategy": "Accelerated", "bidAmount": 2 * CPM, "timezone": zone_at_noon()}
        campaign = self.made("/admin/campaigns", name=name, categories=[TENNIS], **costs, **fields)
        creative = self.admin.post(f"/admin/campaigns/{campaign}/creatives", json={"bannerId": banner})
        assert creative.status_code == HTTPStatus.CREATED, creative.text
        self.changed(f"/admin/campaigns/{campaign}/activate")
        return f"/v1/serve?slot={name}&url=https://{domain}/a", campaign

    def a_payer(self, **fields: object) -> str:
        """Make an advertiser, and give its id."""
        return self.made("/admin/advertisers", name="A", timezone=zone_at_noon(), **fields)

    async def asked(self, slugs: Sequence[str]) -> list[Offer]:
        """Have a reader for each slug, all at once."""
        return await asked(self.product.delivery_url, slugs)

    async def filled(self, paths: Sequence[str]) -> list[Offer]:
        """Have a reader for each contextual slot, all at once."""
        answers = await ask_all(self.product.delivery_url, paths)
        return [Offer(one["requestId"], 0, one["impressionUrl"], one["clickUrl"]) for one in answers if one]

    async def offered(self, slugs: Sequence[str], *, count: int, seconds: float) -> list[Offer]:
        """Ask again and again until so many were offered, or more."""
        offers: list[Offer] = []
        ends_at = time.monotonic() + seconds
        while len(offers) < count:
            assert time.monotonic() < ends_at, f"{len(offers)} of {count} offers within {seconds} s"
            found = await self.asked(slugs)
            offers += found
            if not found:
                await asyncio.sleep(POLL_SECONDS)
        return offers

    def seen(self, offers: Sequence[Offer], *, times: int = 1) -> None:
        """Report impressions, each as often as told."""
        for offer in [*offers] * times:
            assert httpx.get(offer.impression_url).status_code == HTTPStatus.OK

    def clicked(self, offer: Offer) -> None:
        """Follow a link."""
        assert httpx.get(offer.click_url).status_code == HTTPStatus.FOUND

    async def entries(self, *campaigns: str) -> list[Entry]:
        """Read what the money ledger has of campaigns, one after another."""
        rows = await self._fetch(ENTRIES, list(map(UUID, campaigns)))
        return [Entry(row["kind"], str(row["request_id"]), row["slot"], row["amount_micros"]) for row in rows]

    async def charges(self, campaigns: Sequence[str]) -> list[Entry]:
        """Read what was charged to campaigns."""
        return [entry for entry in await self.entries(*campaigns) if entry.kind == MoneyKind.CHARGE]

    async def charged(self, campaigns: Sequence[str], *, count: int, seconds: float) -> list[Entry]:
        """Wait until so much was charged, or more."""
        return await awaited(
            lambda: self.charges(campaigns), lambda charges: len(charges) >= count, seconds=seconds
        )

    async def state(self, campaign: str) -> CampaignState | None:
        """Read what the campaign's budget actor has kept."""
        return next(iter(await self._states(campaign)), None)

    async def leased(self, *campaigns: str, seconds: float) -> None:
        """Wait until somebody has a lease of one of the campaigns."""
        await awaited(
            lambda: self._states(*campaigns),
            lambda found: any(state.leased > 0 for state in found),
            seconds=seconds,
        )

    async def _states(self, *campaigns: str) -> list[CampaignState]:
        kind = make_campaign_kind()
        rows = await self._fetch(STATES, list(campaigns))
        return [kind.decode(row["state"], format_number=row["format"]) for row in rows]

    async def _fetch(self, query: str, campaigns: Sequence[object]) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.product.database_url)
        try:
            return await connection.fetch(query, campaigns)
        finally:
            await connection.close()


async def awaited(
    look: Callable[[], Awaitable[Seen]], is_enough: Callable[[Seen], bool], *, seconds: float
) -> Seen:
    """Look again and again until that is enough; a database that is away for a moment is waited for."""
    ends_at = time.monotonic() + seconds
    while True:
        with contextlib.suppress(*POSTGRES_AWAY):
            seen = await look()
            if is_enough(seen):
                return seen
            assert time.monotonic() < ends_at, f"not within {seconds} s: {seen}"
        await asyncio.sleep(POLL_SECONDS)
