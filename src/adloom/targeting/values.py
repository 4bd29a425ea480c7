"""The normal form of what rules compare: the same for a rule's values and for a request's.

Each function answers None for a text that is no such thing.
"""

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import unquote

DEVICES: Final = ("mobile", "tablet", "desktop")
SEGMENT_CHARACTERS_MAX: Final = 100
DOMAIN_CHARACTERS_MAX: Final = 253
UNKNOWN_COUNTRIES: Final = frozenset({"XX", "T1"})  # Proxies write these for unknown, and for Tor.

_COUNTRY = re.compile(r"[A-Z]{2}")
_LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*")
_LABEL: Final = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
# Sixteen labels at most: a longer host would cost more to look up than it is worth.
_DOMAIN = re.compile(rf"(?:{_LABEL}\.){{0,15}}{_LABEL}")
_END_OF_HOST = re.compile(r"[/?#\\]")
# Python's codec is of 2003 and would turn these into other letters, hence into another domain.
_MAPPED_ANOTHER_WAY = re.compile("[\u00df\u03c2\u200c\u200d]")


def normalize_device(text: str) -> str | None:
    device = text.strip().lower()
    return device if device in DEVICES else None


def normalize_country(text: str) -> str | None:
    """Normalise to ISO 3166-1 alpha-2."""
    country = text.strip().upper()
    if country == "UK":  # Reserved for it in the standard and written by many, but no proxy sends it.
        return "GB"
    return country if _COUNTRY.fullmatch(country) and country not in UNKNOWN_COUNTRIES else None


def normalize_language(text: str) -> str | None:
    """Normalise a language tag to its primary subtag: de-DE is de."""
    tag = _LANGUAGE.fullmatch(text.strip().lower())
    return tag[1] if tag else None


def normalize_segment(text: str) -> str | None:
    """Normalise the name of a segment; the shop chose it, so its case stays."""
    segment = text.strip()
    return segment if 0 < len(segment) <= SEGMENT_CHARACTERS_MAX and segment.isprintable() else None


def normalize_domain(text: str) -> str | None:
    """Normalise a domain to what browsers send: lower case, punycode."""
    domain = text.strip().lower().removesuffix(".")
    if len(domain) > DOMAIN_CHARACTERS_MAX:
        return None
    if not domain.isascii():
        if _MAPPED_ANOTHER_WAY.search(domain):
            return None
        try:
            domain = domain.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    return domain if _DOMAIN.fullmatch(domain) else None


def extract_host(address: str) -> str | None:
    """Return the domain of a URL, without scheme, port, path and the rest."""
    _, is_address, rest = address.strip().partition("://")
    host = _END_OF_HOST.split(rest, maxsplit=1)[0].rpartition("@")[2].partition(":")[0]
    return normalize_domain(host) if is_address else None


def list_domain_and_parents(domain: str) -> list[str]:
    """List a domain and its parents, the longest first: a.b.c, b.c, c."""
    labels = domain.split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]


def find_landing_domain(address: str | None) -> str | None:
    """Return the host that a click leads to, in lower case without `www.`, as blocks name it.

    It is read as browsers do. Python takes what is after a backslash for the host, and leaves `%69` and `ⓔ` as they are.
    """
    _, _, rest = (address or "").partition("://")
    host = _END_OF_HOST.split(rest, maxsplit=1)[0].rpartition("@")[2]
    if host.startswith("["):
        return host[1:].partition("]")[0].lower() or None
    host = unquote(host.partition(":")[0]).lower()
    return (normalize_domain(host) or host).removeprefix("www.").removesuffix(".") or None


def encode_host(address: str) -> str:
    """Write the host of an address as browsers send it, in punycode: apps and link checkers find no other one."""
    scheme, mark, rest = address.partition("://")
    authority = _END_OF_HOST.split(rest, maxsplit=1)[0]
    user, at, place = authority.rpartition("@")
    host, colon, port = place.partition(":")
    return f"{scheme}{mark}{user}{at}{normalize_domain(host) or host}{colon}{port}{rest[len(authority) :]}"


def is_below(domain: str, listed: Collection[str]) -> bool:
    """Whether a domain is in a list, or below one that is; with `www.` a listed one is the same as without."""
    while domain:
        if domain in listed or f"www.{domain}" in listed:
            return True
        domain = domain.partition(".")[2]
    return False
