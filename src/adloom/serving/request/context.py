"""What is known about a request, from its headers and its parameters.

Parts are cached by the raw value that they come from, never by sender, and only in memory.
"""

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from adloom.events.ingest.accept import RequestInfo
from adloom.events.ingest.ivt.flags import INTERNAL
from adloom.runtime.http.client_address import find_client_address
from adloom.runtime.http.fast.fast_routes import FastRequest, index_headers, read_forwarded
from adloom.runtime.http.geoip import Countries
from adloom.runtime.http.networks import Network, Networks
from adloom.serving.request.device import AGENT_CHARACTERS_MAX, DeviceParser
from adloom.serving.request.overrides import Overrides, parse_query
from adloom.targeting.context import Context
from adloom.targeting.values import extract_host, normalize_country, normalize_language

CACHED_VALUES_MAX: Final = 4_096
BEARER: Final = b"bearer "
USER_ID: Final = b"userId"
PARTS_OF_ADDRESS: Final = 3  # A scheme, nothing, a host; the rest of an address is not looked at.
CACHED_BYTES_MAX: Final = 1_024  # Of what is remembered of a request's headers.
LANGUAGE_BYTES_MAX: Final = 64  # The first one counts.
ORIGIN_BYTES_MAX: Final = 300  # A host name has at most 253.

_COUNTRIES: Final = frozenset((b"x-country-code", b"cf-ipcountry"))
ZONES_MAX: Final = 1_024  # More than exist; at the bound the cache is cleared.
MINUTE: Final = timedelta(minutes=1)

LocalTime = tuple[int, int]
LocalMinute = tuple[datetime, datetime, LocalTime]
# What headers say: agent, two countries, languages, logged in, new, referring origin; and hour and day.
_HeaderValues = tuple[bytes, bytes | None, bytes | None, bytes, bool, bool, bytes | None, LocalTime]


class ContextParser:
    """Parses the contexts of a process's requests."""

    def __init__(self, countries: Countries | None = None, *, trusted: Sequence[Network] = ()) -> None:
        devices = DeviceParser()
        self._device_of = devices.device_of
        self.is_crawler = devices.is_crawler
        local_times = LocalTimes()
        self.local_time = local_times.get
        self._local_minute = local_times.find
        self._countries = countries
        self._proxies = Networks(trusted)
        self._known: dict[_HeaderValues, Context] = {}
        self._is_proxy = lru_cache(CACHED_VALUES_MAX)(partial(is_proxy, trusted=self._proxies))
        self._behind_proxies = lru_cache(CACHED_VALUES_MAX)(self._choose_client)

    def parse(self, request: FastRequest, zone: ZoneInfo, now: datetime) -> Context:
        """Return the context of a request for a placement in a time zone.

        Raises ValidationFailedError for a parameter that makes no sense.
        """
        head = request.head
        if (
            head is not None
            and (known := head.context) is not None
            and known[0] is zone
            and known[1] <= now < known[2]
        ):
            context: Context = known[3]
        else:
            context = self._parse_headers(request, zone, now)
        if self._countries is not None and context.country is None:
            country = self._locate_address(request, self._countries)
            context = msgspec.structs.replace(context, country=country)
        return _parse_overrides(request.query).apply_to(context) if request.query else context

    def _parse_headers(self, request: FastRequest, zone: ZoneInfo, now: datetime) -> Context:
        if request.first_values is None:
            request.first_values = index_headers(request.headers)
        header = request.first_values.get
        authorization, referer = header(b"authorization"), header(b"referer")
        country, other_country = header(b"x-country-code"), header(b"cf-ipcountry")
        has_country = bool(country or other_country)
        if has_country and not self._is_proxy(request.client):
            country = other_country = None
        begin, end, local_time = self._local_minute(zone, now)
        values = (
            header(b"user-agent", b""),
            country,
            other_country,
            header(b"accept-language", b""),
            authorization is not None and _is_logged_in(authorization),
            not (header(b"x-device-id") or header(b"x-session-id")),
            None if referer is None else _parse_origin(referer),
            local_time,
        )
        context = self._known.get(values) or self._parse(values)
        if request.head is not None and not has_country:  # Countries depend on the peer too.
            request.head.context = (zone, begin, end, context)
        return context

    def read_request_info(self, request: FastRequest) -> RequestInfo:
        """Return what is known of an event's visitor; an event has no other parameters."""
        head = request.head
        if head is not None and head.info is not None:
            return head.info
        if request.first_values is None:
            request.first_values = index_headers(request.headers)
        values = request.first_values
        agent = values.get(b"user-agent", b"")[:AGENT_CHARACTERS_MAX]
        info = RequestInfo(self._device_of(agent), self._find_country(request, values))
        # Countries depend on the peer too.
        if head is not None and self._countries is None and _COUNTRIES.isdisjoint(values):
            head.info = info
        return info

    def move_to_zone(self, context: Context, zone: ZoneInfo, now: datetime) -> Context:
        """Return the same context for a placement in another time zone."""
        hour, day = self.local_time(zone, now)
        if (hour, day) == (context.hour, context.day):
            return context
        return msgspec.structs.replace(context, hour=hour, day=day)

    def _parse(self, values: _HeaderValues) -> Context:
        agent, country, other_country, accepted, is_logged_in, is_new_visitor, origin, (hour, day) = values
        context = Context(
            device=self._device_of(agent[:AGENT_CHARACTERS_MAX]),
            country=_parse_country(country) or _parse_country(other_country),
            language=_parse_language(accepted[:LANGUAGE_BYTES_MAX]),
            is_logged_in=is_logged_in,
            is_new_visitor=is_new_visitor,
            referrer_domain=None if origin is None or len(origin) > ORIGIN_BYTES_MAX else _parse_host(origin),
            segment=None,
            hour=hour,
            day=day,
        )
        if len(self._known) >= CACHED_VALUES_MAX:
            self._known.clear()
        if (
            sum(len(value) for value in (agent, country, other_country, accepted, origin) if value)
            <= CACHED_BYTES_MAX
        ):
            self._known[values] = context
        return context

    def _find_country(self, request: FastRequest, values: dict[bytes, bytes]) -> str | None:
        country = _parse_country(values.get(b"x-country-code")) or _parse_country(values.get(b"cf-ipcountry"))
        if country is not None and not self._is_proxy(request.client):
            country = None
        if country is None and self._countries is not None:
            return self._locate_address(request, self._countries)
        return country

    def _locate_address(self, request: FastRequest, countries: Countries) -> str | None:
        return countries.find_country(self.find_client(request))

    def find_client(self, request: FastRequest) -> str:
        """Return the visitor's address: the peer's, or what trusted proxies say."""
        if not self._proxies:
            return request.client or ""
        forwarded = read_forwarded(request)
        if forwarded is not None and len(forwarded) > CACHED_BYTES_MAX:
            return self._choose_client(request.client, forwarded)
        return self._behind_proxies(request.client, forwarded)

    def _choose_client(self, peer: str | None, forwarded: bytes | None) -> str:
        lines = [] if forwarded is None else [forwarded.decode("latin-1")]
        return find_client_address(peer, lines, self._proxies)


def is_proxy(peer: str | None, trusted: Networks) -> bool:
    """Return whether a peer may say where its client is: a trusted proxy, or if none is declared, a private address."""
    try:
        address = ipaddress.ip_address(peer or "")
    except ValueError:
        return peer is None  # A local socket.
    address = getattr(address, "ipv4_mapped", None) or address
    return address in (trusted or INTERNAL)


class LocalTimes:
    """Caches the local time of each zone for a minute."""

    def __init__(self) -> None:
        self._minutes: dict[ZoneInfo, LocalMinute] = {}

    def get(self, zone: ZoneInfo, now: datetime) -> LocalTime:
        """Return the hour, 0 to 23, and the day of the week, 0 for Sunday."""
        return self.find(zone, now)[2]

    def find(self, zone: ZoneInfo, now: datetime) -> LocalMinute:
        """Return the minute around a moment, from and until when, with its local time."""
        minute = self._minutes.get(zone)
        if minute is not None and minute[0] <= now < minute[1]:
            return minute
        return self._compute(zone, now)

    def _compute(self, zone: ZoneInfo, now: datetime) -> LocalMinute:
        if len(self._minutes) >= ZONES_MAX:
            self._minutes.clear()
        begin = now.replace(second=0, microsecond=0)
        local = now.astimezone(zone)
        minute = (begin, begin + MINUTE, (local.hour, local.isoweekday() % 7))
        self._minutes[zone] = minute
        return minute


def _is_logged_in(authorization: bytes) -> bool:
    """Accept any bearer token; whether it is valid is the shop's business."""
    return authorization[: len(BEARER)].lower() == BEARER and bool(authorization[len(BEARER) :].strip())


def _parse_origin(referer: bytes) -> bytes | None:
    if referer.startswith(b"https://"):  # Nearly all of them, in half the time.
        end = referer.find(b"/", len(b"https://"))
        return referer if end < 0 else referer[:end]
    parts = referer.split(b"/", PARTS_OF_ADDRESS)
    return b"/".join(parts[:PARTS_OF_ADDRESS]) if len(parts) >= PARTS_OF_ADDRESS else None


def _parse_overrides(query: bytes) -> Overrides:
    # A user id is a person's, so it is not cached.
    is_cached = USER_ID not in query and len(query) <= CACHED_BYTES_MAX
    return _cached_parse_query(query) if is_cached else parse_query(query)


_cached_parse_query = lru_cache(CACHED_VALUES_MAX)(parse_query)


@lru_cache(CACHED_VALUES_MAX)
def _parse_host(origin: bytes) -> str | None:
    return extract_host(origin.decode("latin-1"))


@lru_cache(CACHED_VALUES_MAX)
def _parse_country(value: bytes | None) -> str | None:
    return normalize_country(value.decode("latin-1")) if value else None


@lru_cache(CACHED_VALUES_MAX)
def _parse_language(accepted: bytes) -> str | None:
    first = accepted.decode("latin-1").partition(",")[0]
    return normalize_language(first.partition(";")[0])
