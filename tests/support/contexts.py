"""Builders of contexts; each names only what its test is about."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from adloom.targeting.context import Context

COUNTRIES = ("DE", "FR", "US")
SEGMENTS = ("gold", "new")


def a_context(**fields: Any) -> Context:
    context = Context(
        device="desktop",
        country=None,
        language=None,
        is_logged_in=False,
        is_new_visitor=True,
        referrer_domain=None,
        segment=None,
        hour=12,
        day=0,
    )
    return msgspec.structs.replace(context, **fields)


def some_contexts() -> st.SearchStrategy[Context]:
    return st.builds(
        Context,
        device=st.sampled_from(("mobile", "tablet", "desktop")),
        country=st.none() | st.sampled_from(COUNTRIES),
        language=st.none() | st.sampled_from(("de", "en")),
        is_logged_in=st.booleans(),
        is_new_visitor=st.booleans(),
        referrer_domain=st.none() | st.sampled_from(("example.com", "news.example.com", "other.example")),
        segment=st.none() | st.sampled_from(SEGMENTS),
        hour=st.integers(0, 23),
        day=st.integers(0, 6),
    )
