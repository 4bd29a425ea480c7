"""The public paths of delivery, their neutral names below a prefix, and words that ad blockers look for.

Lists such as EasyList block requests by words in their address: `/banners/`, `/ads/`, `impression`, `728x90`.
"""
# pure

import re
from typing import Final

from adloom.core.setting import SettingValueError

# A path that ends with `/` or `-` stands for all paths that begin with it.
NEUTRAL_NAMES: Final = {
    "/banners/serve": "/items",
    "/banners/serve/": "/items/",
    "/banners/events/impression": "/seen",
    "/banners/events/click": "/opened",
    "/banners/events/batch": "/notes",
    "/events/conversion": "/done",
    "/i/": "/i/",
    "/c/": "/c/",
    "/api/v1/ads/serve": "/pick",
    "/api/v1/ads/events/impression": "/pick/seen",
    "/api/v1/ads/events/click": "/pick/opened",
    "/v1/serve": "/fit",
    "/v1/serve/batch": "/fit/batch",
    "/v1/serve/page": "/page",
    "/v1/classify-page": "/text",
    "/v1/preview": "/look",
    "/serve/": "/box/",
    "/p/": "/p/",
    "/tag.js": "/loom.js",
    "/tag-": "/loom-",
    "/tag-debug.js": "/loom-debug.js",
    "/crawler": "/crawler",
}
SCRIPT: Final = "/tag.js"
FRAMES: Final = "/serve/"
FILES: Final = "/p/"
# The first parts of other paths on delivery.
OTHER_PARTS: Final = frozenset({"health", "sample"})

_BLOCKED_WORD: Final = re.compile(
    r"ads?\d*|adv|adv?(?:box|slot|unit|zone|space|server?|sense|words|views?|tech|tags?|image|frame|block|spot)s?|"
    r"advert\w*|\w*banners?\d*|sponsor\w*|pop(?:up|under)s?|skyscrapers?|leaderboards?|billboards?|mpu|"
    r"affiliates?|track(?:er|ing)?s?|pixels?|beacons?|impressions?|clicks?|analytics|dfp|prebid|"
    r"(?:ads?)?\d{2,4}x\d{2,4}"
)
_PREFIX: Final = re.compile(r"(?:/[a-z0-9][a-z0-9_-]*)+")


def name_neutrally(path: str, prefix: str) -> str:
    """Return the path that pages should use for a public path; without a prefix it is the same."""
    if not prefix:
        return path
    known = max((one for one in NEUTRAL_NAMES if path == one or _is_below(path, one)), key=len)
    return f"{prefix}{NEUTRAL_NAMES[known]}{path[len(known) :]}"


def find_blocked_word(name: str) -> str | None:
    """Return the first word of a slug or a path that common lists of ad blockers look for."""
    return next((word for word in re.split(r"[-/_.]", name) if _BLOCKED_WORD.fullmatch(word)), None)


def parse_public_prefix(text: str) -> str:
    prefix = text.rstrip("/")
    if not _PREFIX.fullmatch(prefix):
        raise SettingValueError("a path like /a, of small letters, digits and hyphens")
    if word := find_blocked_word(prefix):
        raise SettingValueError(f"a path without words that ad blockers look for, such as {word!r}")
    first = prefix.split("/")[1]
    taken = {path.split("/")[1] for path in NEUTRAL_NAMES} | OTHER_PARTS
    if first in taken or first.startswith("tag-"):
        raise SettingValueError(f"a path that delivery has no other use for, unlike /{first}")
    return prefix


def _is_below(path: str, known: str) -> bool:
    return known.endswith(("/", "-")) and path.startswith(known)
