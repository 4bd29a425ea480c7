"""Visitors of a placement whose only banner has a frequency cap: while Valkey does not answer in time, it is withheld.

A process of its own, as delivery is: `python -m tests.events.flood_visitors URL`. It ends when its input does, and prints
how often it got a banner and how often it did not.
"""

import asyncio
import json
import sys
from contextlib import aclosing
from uuid import UUID

from adloom.core.clock import SystemClock
from adloom.events.frequency.counts import FrequencyCounters
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.runtime.valkey import open_valkey
from adloom.serving.direct.frequency import DirectFrequency
from adloom.serving.eligibility.frequency_lookup import FrequencyLookup
from tests.serving.test_direct_frequency import capped
from tests.serving.test_serve import serve_routes
from tests.support.rows import a_snapshot

REST_SECONDS = 0.02


async def ask(url: str) -> tuple[int, int]:
    """Ask again and again, each time as another user."""
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    served = withheld = 0
    async with open_valkey(url) as valkey, aclosing(DedicatedConnection(valkey)) as line:
        lookup = FrequencyLookup(FrequencyCounters(line), SystemClock())
        serve = serve_routes(a_snapshot(capped(1)), frequency=DirectFrequency(lookup)).serve
        while not ended.done():
            query = b"userId=%b" % str(UUID(int=served + withheld + 1)).encode()
            answer = serve(FastRequest(b"GET", b"/banners/serve/home", query))
            found = answer if isinstance(answer, FastAnswer) else await answer
            if json.loads(found.body)["banners"]:
                served += 1
            else:
                withheld += 1
            await asyncio.sleep(REST_SECONDS)
    return served, withheld


if __name__ == "__main__":
    print(json.dumps(asyncio.run(ask(sys.argv[1]))))  # noqa: T201 - the answer
