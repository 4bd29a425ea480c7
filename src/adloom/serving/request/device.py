"""What kind of device asks, from its user agent, and whether it is a crawler.

The parser knows the names of systems and devices but not their kinds, on principle; the kinds are
ours. What is no telephone and no tablet is a desktop: computers, televisions, consoles, programs.
An iPad that asks for the desktop's pages calls itself a Mac, and nothing in its headers says otherwise.
"""

import re
from functools import lru_cache
from typing import Final

from ua_parser import Domain, load_lazy_builtins
from ua_parser.regex import Resolver

AGENTS_REMEMBERED_MAX: Final = 8_192
AGENT_CHARACTERS_MAX: Final = 512  # What kind of device it is stands at the beginning.

_NAMES: Final = Domain.OS | Domain.DEVICE
# Televisions and headsets run Android without the word «Mobile» as tablets do.
_LARGE_SCREEN = re.compile(
    r"\bsmart-?tv\b|\btv\b|(?:apple|google|hbb)-?tv|\bbravia\b|\baft[a-z]\w*|\bchromecast\b|\bcrkey\b"
    r"|\broku\b|\bweb0s\b|\bviera\b|\bquest\b|\boculus",
    re.IGNORECASE,
)
_TABLET_WORD = re.compile(r"\btablet\b(?! pc)", re.IGNORECASE)
# Samsung's tablets, some of which say «Mobile».
_TABLET_MODEL = re.compile(r"(?:GT-P|SM-[PTX])\d")
_TABLET_FAMILIES: Final = ("iPad", "Kindle")
_PHONE_MODELS: Final = frozenset({"Smartphone", "Feature Phone"})
_PHONE_SYSTEMS: Final = frozenset(
    {
        "Android",
        "iOS",
        "Windows Phone",
        "BlackBerry OS",
        "KaiOS",
        "Firefox OS",
        "Symbian OS",
        "Nokia Series 40",
    }
)
_CRAWLER: Final = "Spider"
# Crawlers that the parser takes for telephones, because they dress up as one or begin like one.
_DRESSED_UP = re.compile(r"\bcompatible;[^)]*(?:bot|crawler|spider)\b|^mediapartners-google", re.IGNORECASE)
# Libraries that it takes for crawlers: a server that reports for its readers may use any of them.
_LIBRARY = re.compile(
    r"^(?:java|jnlp|python-urllib|wordpress)/|\bgoogle-http-java-client\b|\bappengine-google\b"
    r"|\bwinhttp\b|http%20client",
    re.IGNORECASE,
)


class DeviceParser:
    """Tells kinds of devices, and remembers them for the user agents seen latest."""

    def __init__(self) -> None:
        _, systems, devices = load_lazy_builtins()
        # Browsers are not asked for: their patterns would take a third of the memory.
        self._names = Resolver(([], systems, devices))
        self.device_of = lru_cache(AGENTS_REMEMBERED_MAX)(self._parse_device)
        self._is_crawler = lru_cache(AGENTS_REMEMBERED_MAX)(self._calls_itself_crawler)

    def is_crawler(self, user_agent: bytes) -> bool:
        """Tell whether a user agent says of itself that it is a crawler; a library is none."""
        return self._is_crawler(user_agent[:AGENT_CHARACTERS_MAX])

    def _parse_device(self, user_agent: bytes) -> str | None:
        agent = user_agent.decode("latin-1").strip()[:AGENT_CHARACTERS_MAX]
        if not agent:
            return None
        if _LARGE_SCREEN.search(agent):
            return "desktop"
        names = self._names(agent, _NAMES)
        system = names.os.family if names.os else ""
        family = names.device.family if names.device else ""
        model = (names.device.model if names.device else None) or ""
        if _is_tablet(agent, system, family, model):
            return "tablet"
        if system in _PHONE_SYSTEMS or model in _PHONE_MODELS or "Mobi" in agent:
            return "mobile"
        return "desktop"

    def _calls_itself_crawler(self, user_agent: bytes) -> bool:
        agent = user_agent.decode("latin-1").strip()
        if not agent or _LIBRARY.search(agent):
            return False
        device = self._names(agent, Domain.DEVICE).device
        return bool(device and device.family == _CRAWLER) or _DRESSED_UP.search(agent) is not None


def _is_tablet(agent: str, system: str, family: str, model: str) -> bool:
    if family.startswith(_TABLET_FAMILIES) or _TABLET_MODEL.match(model) or _TABLET_WORD.search(agent):
        return True
    # A browser on a telephone says so; a program that is no browser says nothing of the kind.
    is_browser = agent.startswith("Mozilla/")
    return system == "Android" and is_browser and "Mobi" not in agent
