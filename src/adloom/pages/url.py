"""The normalised URL that a page is known by: however an address is written, the page is one."""

# pure

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import Final

import idna
import msgspec

URL_CHARACTERS_MAX: Final = 8_192  # What is longer is no address of a page.
NORMALIZED_CHARACTERS_MAX: Final = 2_048  # The column's size.
HOST_CHARACTERS_MAX: Final = 253
LABEL_CHARACTERS_MAX: Final = 63

# Query parameters that say where a reader came from, or whose session it is, and not what the page shows; compared in
# lower case.
TRACKING_PARAMETERS: Final = frozenset(
    """
    __hsfp __hssc __hstc _ga _gac _gid _gl _hsenc _hsmi _ke _kx _openstat action_object_map adloom-debug
    adloom-preview adloom_click
    at_campaign at_medium awc cjevent cmp cmpid dclid dm_i ef_id epik fb_action_ids fb_action_types
    fb_ref fb_source fbclid gad_campaignid gad_source gbraid gclid gclsrc guccounter guce_referrer
    guce_referrer_sig hsctatracking icid igsh igshid irclickid irgwc jsessionid li_fat_id mbid mkt_tok ml_subscriber
    ml_subscriber_hash mkwid msclkid ncid nr_email_referer ns_campaign ns_mchannel ns_source obclid ocid pcrid
    phpsessid piwik_campaign piwik_keyword rb_clickid rdt_cid ref ref_src ref_url referrer s_cid s_kwcid sc_campaign
    sc_channel sc_content sc_country sc_eid sc_geo sc_medium sc_outcome sccid soc_src soc_trk spm srsltid
    sscid taid tblci trk trkcampaign ttclid twclid wbraid wickedid wt_mc wt_zmc xtor yclid ymclid zanpid
    """.split()  # noqa: SIM905 - a table
)
TRACKING_PREFIXES: Final = ("utm_", "mc_", "mtm_", "pk_", "hsa_", "oly_", "vero_", "matomo_")

_SHAPE: Final = re.compile(r"(?i:https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.ASCII)
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9._~/!$&'()*+,;=:@-]*", re.ASCII)
_PLAIN_HOST: Final = re.compile(
    r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*", re.ASCII
)
_PLAIN_QUERY: Final = re.compile(r"[A-Za-z0-9._~/?!$&'()*+,;=:@-]*", re.ASCII)
_ESCAPE_OR_OTHER: Final = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~/?!$&'()*+,;=:@-]", re.ASCII)
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Servers of Java put it into every link of a reader without cookies, and so of a crawler.
_SESSION: Final = re.compile(r";jsessionid=[^/;]*", re.IGNORECASE)
_IGNORED: Final = str.maketrans("", "", "\t\r\n")
_ENDS_IGNORED: Final = "".join(map(chr, range(33)))


class NormalizedUrl(msgspec.Struct, frozen=True):
    """A page's address without scheme: `text` is the whole of it, `host` its beginning without port."""

    host: str
    text: str


def normalize_url(text: str) -> NormalizedUrl | None:
    """Normalise an http or https address; None for anything else.

    Browsers read a backslash as a slash, and ignore line ends: so do we, or a host could be hidden from us.
    """
    if len(text) > URL_CHARACTERS_MAX:
        return None
    match = _SHAPE.match(text)
    if match is None or "\\" in text or not text.isprintable():
        text = text.strip(_ENDS_IGNORED).translate(_IGNORED)
        before, mark, after = text.partition("?")
        if "#" not in before:
            text = before.replace("\\", "/") + mark + after
        else:
            text = before.partition("#")[0].replace("\\", "/")
        match = _SHAPE.match(text)
        if match is None:
            return None
    authority, path, query = match.groups()
    host, port = _split_authority(authority)
    host = normalize_host(host)
    if host is None or port is None:
        return None
    normalized = host + port + _normalize_path(path)
    if query:
        parameters = _normalize_query(query)
        if parameters:
            normalized = f"{normalized}?{parameters}"
    if len(normalized) > NORMALIZED_CHARACTERS_MAX:
        return None
    return NormalizedUrl(host, normalized)


def is_host_of(host: str, domain: str) -> bool:
    """Whether a host is a domain or below it; both normalised."""
    return host == domain or host.endswith(f".{domain}")


@lru_cache(maxsize=1_024)  # A host is at most 253 characters, or it is not kept.
def _normalize_other_host(host: str) -> str | None:
    if host.startswith("[") and host.endswith("]"):
        try:
            return f"[{IPv6Address(host[1:-1])}]" if "%" not in host else None
        except AddressValueError:
            return None
    try:
        ascii_host = idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return None
    return ascii_host if _PLAIN_HOST.fullmatch(ascii_host) else None


def normalize_host(host: str) -> str | None:
    """Write a host in lower-case ASCII without its `www.`; None where it cannot be one."""
    if not host or len(host) > HOST_CHARACTERS_MAX + 1:
        return None
    host = host.lower()
    host = host.removesuffix(".")
    if not _PLAIN_HOST.fullmatch(host):
        other = _normalize_other_host(host)
        if other is None:
            return None
        host = other
    while host.startswith("www.") and "." in host[4:]:
        host = host[4:]
    if len(host) > LABEL_CHARACTERS_MAX and (
        len(host) > HOST_CHARACTERS_MAX or max(map(len, host.split("."))) > LABEL_CHARACTERS_MAX
    ):
        return None
    return host


def _split_authority(authority: str) -> tuple[str, str | None]:
    """Split into host and `:port`, empty for the usual ones and None for one that is no number; drop credentials."""
    if "@" in authority:
        authority = authority.rpartition("@")[2]
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        return authority, ""
    if not port:
        return host, ""
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65_535):  # noqa: PLR2004 - ports
        return host, None
    number = int(port)
    return host, "" if number in {80, 443} else f":{number}"


def _normalize_path(path: str) -> str:
    if not _PLAIN_PATH.fullmatch(path):
        path = _normalize_escapes(path, in_path=True)
    if ";" in path:
        path = _SESSION.sub("", path)
    if "/." in path:
        path = _remove_dot_segments(path)
    return path.rstrip("/")


def _remove_dot_segments(path: str) -> str:
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            if kept:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(kept)


def _normalize_query(query: str) -> str:
    if not _PLAIN_QUERY.fullmatch(query):
        query = _normalize_escapes(query, in_path=False)
    if "&" not in query:
        return "" if _is_tracking(query) else query
    return "&".join(sorted(part for part in query.split("&") if part and not _is_tracking(part)))


def _is_tracking(parameter: str) -> bool:
    name = parameter.partition("=")[0].lower()
    return name in TRACKING_PARAMETERS or name.startswith(TRACKING_PREFIXES)


def _normalize_escapes(text: str, *, in_path: bool) -> str:
    """Escape what must be, in capitals, and nothing that need not be."""

    def write(match: re.Match[str]) -> str:
        found = match[0]
        if len(found) == 1:
            return "".join(f"%{byte:02X}" for byte in found.encode("utf-8", "replace"))
        character = chr(int(found[1:], 16))
        return character if character in _UNRESERVED else found.upper()

    written = _ESCAPE_OR_OTHER.sub(write, text)
    return written.replace("?", "%3F") if in_path else written
