"""A context with defaults: a test names only what it is about."""

from typing import Any

import msgspec

from adloom.targeting.context import Context

DEFAULT_CONTEXT = Context(
    device="desktop",
    country="DE",
    language="de",
    is_logged_in=False,
    is_new_visitor=False,
    referrer_domain=None,
    segment=None,
    hour=12,
    day=0,
)


def a_context(**fields: Any) -> Context:
    return msgspec.structs.replace(DEFAULT_CONTEXT, **fields)
