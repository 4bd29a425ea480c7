"""Rate limits of the public routes, if the operator has set one."""

from collections.abc import Sequence

import msgspec

from adloom.core.clock import Clock
from adloom.runtime.http.client_address import find_client_address, rate_limit_key
from adloom.runtime.http.fast.fast_routes import FastHandler, FastRequest, FastResult, FastRoute
from adloom.runtime.http.rate_limit import RateLimiter
from adloom.runtime.settings import Network


def limit_routes(
    routes: Sequence[FastRoute], limiter: RateLimiter, clock: Clock, *, trusted: Sequence[Network]
) -> list[FastRoute]:
    """Put a limit per client address before every route.

    Each process counts for itself, so the limit holds per process, not for their sum: a counter in Valkey would
    put a round trip before every ad.
    """

    def behind_limit(handler: FastHandler) -> FastHandler:
        def check_and_handle(request: FastRequest) -> FastResult:
            forwarded = [
                value.decode("latin-1") for name, value in request.headers if name == b"x-forwarded-for"
            ]
            client = rate_limit_key(find_client_address(request.client, forwarded, trusted))
            limiter.check(client, now=clock.now())
            return handler(request)

        return check_and_handle

    return [msgspec.structs.replace(route, handler=behind_limit(route.handler)) for route in routes]
