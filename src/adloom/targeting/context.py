"""What is known about a request when ads are chosen for it; nothing here names a person."""

from hashlib import sha256

import msgspec

HASH_DIGITS = 16


class Context(msgspec.Struct, frozen=True, kw_only=True, gc=False, cache_hash=True):
    """The nine things that rules ask about; None is unknown. Day 0 is Sunday."""

    device: str | None
    country: str | None
    language: str | None
    is_logged_in: bool
    is_new_visitor: bool
    referrer_domain: str | None
    segment: str | None
    hour: int
    day: int


def hash_context(context: Context) -> str:
    """Return the cache key of a context; the segment is not part of it, but beside it in the key."""
    written = "|".join(
        (
            context.device or "",
            context.country or "",
            "true" if context.is_logged_in else "false",
            context.language or "",
            str(context.hour),
            str(context.day),
            "true" if context.is_new_visitor else "false",
            context.referrer_domain or "",
        )
    )
    return sha256(written.encode()).hexdigest()[:HASH_DIGITS]
