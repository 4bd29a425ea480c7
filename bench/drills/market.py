"""Drill 10: the worker with the directory of campaigns dies, and every campaign still reaches every stripe."""

import asyncio
import signal
import time
from collections.abc import Iterable
from typing import Final

from adloom.budgets.campaign.demand import DIRECTORY
from adloom.core.ids import CampaignId, SystemIds
from adloom.market.kinds import make_kinds
from adloom.market.messages import CategoryDemand, DemandTaken
from adloom.market.routing import BIDDER, DISTRIBUTOR, STRIPES
from adloom.resource.changes import INSERT_CHANGES, RAISE_VERSION, IndexedNoun
from adloom.runtime.actors.actor import find_shard
from adloom.runtime.actors.nats.connection import NatsConnection
from adloom.runtime.actors.nats.messages import UnreadableGroupError, decode_group
from adloom.runtime.actors.nats.pinned import SUBJECTS
from adloom.runtime.actors.nats.ports import Received
from bench.drills.cluster import Cluster
from bench.drills.result import DrillError, Figures

CATEGORY: Final = "539"
CAMPAIGNS: Final = 6
KNOWN_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.1
CREATE: Final = """
    WITH banner AS (
        INSERT INTO banners (public_id, title, primary_image_url, cta_url)
        VALUES ($2, 'drill', 'https://cdn.example.com/a.png', 'https://shop.example.com/') RETURNING id
    ), campaign AS (
        INSERT INTO campaigns (public_id, name, status, bid_type, bid_amount_micros, categories)
        VALUES ($1, 'drill', 'active', 'cpm', 1000000, ARRAY[$3::text]) RETURNING id
    ), creative AS (
        INSERT INTO creatives (campaign_id, banner_id, created_at)
        SELECT campaign.id, banner.id, now() FROM campaign, banner
    )
    SELECT id FROM campaign
"""
PAUSE: Final = "UPDATE campaigns SET status = 'paused' WHERE public_id = $1 RETURNING id"


class Stripes:
    """Receives which campaigns bidders get, and which they say to have: NATS sends it to all subscribers."""

    def __init__(self) -> None:
        self._kinds = {kind.name: kind for kind in make_kinds() if kind.name in {BIDDER, DISTRIBUTOR}}
        self._campaigns: dict[int, set[CampaignId]] = {}  # By version of the category.
        self._versions: dict[int, int] = {}  # By stripe.

    def forget(self) -> None:
        """Forget what stripes have: some were on a worker that is dead."""
        self._versions.clear()

    def have(self, campaigns: set[CampaignId]) -> bool:
        """Return whether every stripe has these campaigns and no other."""
        known = [self._campaigns.get(version) for version in self._versions.values()]
        return len(known) == STRIPES and all(one == campaigns for one in known)

    async def receive(self, received: Received) -> None:
        try:
            group = decode_group(received.data)
        except UnreadableGroupError:
            return  # Without content: it gives a shard an owner.
        for sent in group.messages:
            if sent.kind in self._kinds:
                self._take(self._kinds[sent.kind].decode_message(sent.body))

    def _take(self, message: object) -> None:
        if isinstance(message, CategoryDemand) and message.category == CATEGORY:
            self._campaigns[message.version] = {one.campaign_id for one in message.campaigns}
        elif isinstance(message, DemandTaken) and message.category == CATEGORY:
            self._versions[message.stripe] = message.version


async def kill_directory(cluster: Cluster) -> Figures:
    """10. The owner of the directory is killed: every active campaign is in every stripe within 60 s."""
    connection = NatsConnection(cluster.nats_url, name="drill-market")
    await connection.open(asyncio.Event())
    ids = SystemIds()
    stripes, active = Stripes(), {CampaignId(ids.make()) for _ in range(CAMPAIGNS)}
    await connection.subscribe(SUBJECTS, stripes.receive)
    await _change(cluster, created=active)
    first = await _wait(cluster, stripes, active)

    shards = await cluster.read_shards()
    [owner] = [name for name, one in shards.items() if find_shard(DIRECTORY) in one.held]
    cluster.signal(owner, signal.SIGKILL)
    await cluster.workers[owner].wait()
    stripes.forget()
    new, paused = CampaignId(ids.make()), active.pop()
    active.add(new)
    await _change(cluster, created={new}, paused={paused})
    again = await _wait(cluster, stripes, active)
    await connection.close()
    return {"in every stripe, s": first, "in every stripe after the kill, s": again}


async def _change(
    cluster: Cluster, *, created: Iterable[CampaignId], paused: Iterable[CampaignId] = ()
) -> None:
    async with cluster.pool.acquire() as connection, connection.transaction():
        keys = [await connection.fetchval(CREATE, one, SystemIds().make(), CATEGORY) for one in created]
        keys += [await connection.fetchval(PAUSE, one) for one in paused]
        version = await connection.fetchval(RAISE_VERSION)
        await connection.execute(INSERT_CHANGES, version, [IndexedNoun.CAMPAIGN] * len(keys), keys)


async def _wait(cluster: Cluster, stripes: Stripes, campaigns: set[CampaignId]) -> float:
    began_at = time.perf_counter()
    while not stripes.have(campaigns):
        seconds = time.perf_counter() - began_at
        if seconds > KNOWN_SECONDS_MAX * cluster.patience:
            raise DrillError(f"not all campaigns are in every stripe after {seconds:.0f} s")
        await asyncio.sleep(POLL_SECONDS)
    return time.perf_counter() - began_at
