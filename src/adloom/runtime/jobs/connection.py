"""How BullMQ reaches Valkey: through a client of ours, so that waits are bounded as everywhere else.

Left to itself the library opens its own, which tries again for minutes without saying so, and
warns of things that `adloom doctor` looks at.
"""

from typing import Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from adloom.runtime.valkey import CONNECT_SECONDS_MAX

# BullMQ blocks for up to 10 s where there is nothing to do, and the answer must still come in time.
ANSWER_SECONDS_MAX: Final = 15.0
# In front of every key of a queue. It is BullMQ's own, which the tools of operators look for.
PREFIX: Final = "bull"


def jobs_client(redis_url: str) -> Redis:
    """Make a client that connects when it is first used."""
    return Redis.from_url(
        redis_url.replace("valkey", "redis", 1) if redis_url.startswith("valkey") else redis_url,
        decode_responses=True,
        socket_connect_timeout=CONNECT_SECONDS_MAX,
        socket_timeout=ANSWER_SECONDS_MAX,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=30,
    )
