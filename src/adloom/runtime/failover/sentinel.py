"""A client of the Valkey that Sentinel says is the primary.

`REDIS_URL` is then `redis+sentinel://:password@one:26379,two:26379,three:26379/NAME`, where NAME is what the sentinels
call the primary. The password is that of the primary; `?sentinelPassword=` is that of the sentinels, `db=` the database.
With `rediss+sentinel://` the connections to sentinels and to the primary are encrypted; files are named as for `rediss://`.
"""

from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from redis.asyncio import Redis
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool

ENCRYPTED: Final = ("rediss+sentinel", "valkeys+sentinel")
SCHEMES: Final = ("redis+sentinel", "valkey+sentinel", *ENCRYPTED)
TLS_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
SENTINEL_PORT: Final = 26_379
SENTINEL_SECONDS_MAX: Final = 1.0
# A primary that dies takes with it what no replica has. So an event is accepted when one has it.
REPLICAS: Final = 1


class SentinelValkey(Redis):
    """A client that asks the sentinels before it connects."""

    sentinels: Sentinel
    replicas: int = REPLICAS

    async def aclose(self, close_connection_pool: bool | None = None) -> None:  # noqa: FBT001 - the driver's
        """Close the connections, those to the sentinels too."""
        await super().aclose(close_connection_pool)
        await self.connection_pool.aclose()
        for one in self.sentinels.sentinels:
            await one.aclose()


def is_sentinel(redis_url: str) -> bool:
    return urlsplit(redis_url).scheme in SCHEMES


def make_sentinel_client(redis_url: str, **options: Any) -> SentinelValkey:  # noqa: ANN401 - the driver's
    """Make a client of the primary that a URL names."""
    parts = urlsplit(redis_url)
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    addresses = [_split_host(host) for host in hosts.split(",")]
    tls: dict[str, Any] = {}
    if parts.scheme in ENCRYPTED:
        tls = {"ssl": True, **{name: query[name] for name in TLS_FILES if name in query}}
    sentinel_options = {
        **tls,
        "password": query.get("sentinelPassword"),
        "socket_timeout": SENTINEL_SECONDS_MAX,
        "socket_connect_timeout": SENTINEL_SECONDS_MAX,
        "retry": options["retry"],
    }
    sentinel = Sentinel(addresses, sentinel_kwargs=sentinel_options)
    pool = SentinelConnectionPool(
        parts.path.strip("/"),
        sentinel,
        username=unquote(user) or None,
        password=unquote(password) or None,
        db=int(query.get("db", "0")),
        **tls,
        **options,
    )
    client = SentinelValkey(connection_pool=pool)
    client.sentinels = sentinel
    client.replicas = int(query.get("replicas", str(REPLICAS)))
    return client


def count_replicas(valkey: Redis) -> int:
    """Return how many replicas must have an event before it is accepted."""
    return valkey.replicas if isinstance(valkey, SentinelValkey) else 0


def _split_host(host: str) -> tuple[str, int]:
    name, colon, port = host.rpartition(":")
    return (name, int(port)) if colon and port.isdigit() else (host, SENTINEL_PORT)
