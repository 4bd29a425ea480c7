"""Public routes a second time, by names below a prefix that ad blockers do not look for."""

from collections.abc import Sequence

from adloom.core.public_paths import NEUTRAL_NAMES, name_neutrally
from adloom.runtime.http.fast.fast_routes import FastRoute, make_alias_route


def build_neutral_routes(routes: Sequence[FastRoute], prefix: str) -> list[FastRoute]:
    """Return an alias for each public route that has none of its own among the routes; none without a prefix."""
    if not prefix:
        return []
    there = {route.path for route in routes}
    paths = {path.encode(): name_neutrally(path, prefix).encode() for path in NEUTRAL_NAMES}
    return [
        make_alias_route(route, paths[route.path])
        for route in routes
        if route.path in paths and paths[route.path] not in there
    ]
