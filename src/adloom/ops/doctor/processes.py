"""The product's own processes: whether they are ready, and how old the index is that they serve."""

from http import HTTPStatus

import msgspec

from adloom.ops.doctor.finding import Finding, fail, ok, warn
from adloom.runtime.http.probe import fetch
from adloom.serving.health import DeliveryHealthReport, IndexCheck

# Delivery looks at the catalog's version every second.
INDEX_SECONDS_GOOD = 5.0
INDEX_SECONDS_MAX = 60.0


async def health(name: str, host: str, port: int, path: str) -> tuple[Finding, bytes]:
    """Ask a process how it is, and give what it said."""
    remedy = f"see what `adloom up` has logged about {name.lower()}"
    try:
        status, body = await fetch(host, port, path)
    except (OSError, TimeoutError, ValueError) as error:
        return fail(name, f"port {port} does not answer: {error or type(error).__name__}", remedy), b""
    if status != HTTPStatus.OK:
        return fail(name, f"answers {status}: {body.decode(errors='replace')[:200]}", remedy), body
    return ok(name, f"ready on port {port}"), body


def index_of(body: bytes) -> IndexCheck | None:
    """Read what a delivery process says about its index; None where that is no health of one."""
    try:
        return msgspec.json.decode(body, type=DeliveryHealthReport).checks.index
    except msgspec.MsgspecError:
        return None


def judged_index(index: IndexCheck | None, *, catalog_version: int | None) -> Finding:
    """Judge the index that is served against the catalog."""
    if index is None or index.version is None or index.age_seconds is None:
        return fail("Index", "delivery has none", "see what delivery has logged; it needs the database once")
    detail = (
        f"version {index.version}, checked {index.age_seconds:.1f} s ago; the catalog is at {catalog_version}"
    )
    remedy = "see what delivery has logged: it cannot read the catalog"
    if index.age_seconds > INDEX_SECONDS_MAX:
        return fail("Index", detail, remedy)
    if index.age_seconds > INDEX_SECONDS_GOOD:
        return warn("Index", detail, remedy)
    return ok("Index", detail)
