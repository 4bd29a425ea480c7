"""Drill 12: equal states on both hosts."""

from collections import Counter
from typing import Final

from bench.drills.cluster import Cluster
from bench.drills.equality.campaigns import compare_campaigns
from bench.drills.equality.others import compare_others
from bench.drills.result import Figures

SEEDS: Final = 3


async def compare_hosts(cluster: Cluster) -> Figures:
    """12. The same messages on the host in one process and on the one on NATS: equal states of all kinds."""
    for name in list(cluster.workers):
        await cluster.end_worker(name)
    figures: Counter[str] = Counter()
    for seed in range(SEEDS):
        figures.update(await compare_campaigns(cluster.nats_url, cluster.pool, seed=seed))
        figures.update(await compare_others(cluster.nats_url, cluster.pool, seed=seed))
    return {"seeds": SEEDS, **figures}
