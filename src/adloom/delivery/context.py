"""What is known about a request, from its headers and its parameters.

Parts are remembered by the raw value they come from, never by who sent it, and only in memory.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from adloom.delivery.device import DeviceReader
from adloom.delivery.local_time import LocalTimes
from adloom.delivery.overrides import Overrides, overrides_of_query
from adloom.ledger.circumstances import Circumstances
from adloom.runtime.geoip import CountryLookup, NoCountries
from adloom.runtime.http.client_address import client_address
from adloom.runtime.http.hot import HotRequest, first_values
from adloom.runtime.settings import Network
from adloom.targeting.context import Context
from adloom.targeting.values import country_of, host_of, language_of

VALUES_REMEMBERED_MAX: Final = 4_096
BEARER: Final = b"bearer "
USER_ID: Final = b"userId"
PARTS_OF_ADDRESS: Final = 3  # A scheme, nothing, a host; the rest of an address is not looked at.


class ContextReader:
    """Reads the contexts of a process's requests."""

    def __init__(self, countries: CountryLookup | None = None, *, trusted: Sequence[Network] = ()) -> None:
        devices = DeviceReader()
        self._device_of = devices.device_of
        self.is_crawler = devices.is_crawler
        self._local_time = LocalTimes().of
        self._countries = None if isinstance(countries, NoCountries) else countries
        self._trusted = trusted
        self._behind_proxies = lru_cache(VALUES_REMEMBERED_MAX)(self._client_of)

    def context_of(self, request: HotRequest, zone: ZoneInfo, now: datetime) -> Context:
        """Tell what is known about a request to a placement in a time zone.

        Raises ValidationFailedError for a parameter that makes no sense.
        """
        if request.first_values is None:
            request.first_values = first_values(request.headers)
        header = request.first_values.get
        hour, day = self._local_time(zone, now)
        context = Context(
            device=self._device_of(header(b"user-agent", b"")),
            country=self._country(request, request.first_values),
            language=_language_of(header(b"accept-language", b"")),
            is_logged_in=_is_logged_in(header(b"authorization")),
            is_new_visitor=not (header(b"x-device-id") or header(b"x-session-id")),
            referrer_domain=_referrer_domain_of(header(b"referer")),
            segment=None,
            hour=hour,
            day=day,
        )
        return _overrides_of(request.query).applied_to(context) if request.query else context

    def circumstances_of(self, request: HotRequest) -> Circumstances:
        """Tell of an event's reader what is told of one who asks for ads; an event has no other parameters."""
        if request.first_values is None:
            request.first_values = first_values(request.headers)
        values = request.first_values
        return Circumstances(self._device_of(values.get(b"user-agent", b"")), self._country(request, values))

    def moved_to(self, context: Context, zone: ZoneInfo, now: datetime) -> Context:
        """Tell the same of a request for another placement, in its own time zone."""
        hour, day = self._local_time(zone, now)
        if (hour, day) == (context.hour, context.day):
            return context
        return msgspec.structs.replace(context, hour=hour, day=day)

    def _country(self, request: HotRequest, values: dict[bytes, bytes]) -> str | None:
        country = _country_of(values.get(b"x-country-code")) or _country_of(values.get(b"cf-ipcountry"))
        if country is None and self._countries is not None:
            return self._country_by_address(request, self._countries)
        return country

    def _country_by_address(self, request: HotRequest, countries: CountryLookup) -> str | None:
        if not self._trusted:
            return countries.country_of(request.client or "")
        forwarded = tuple([value for name, value in request.headers if name == b"x-forwarded-for"])
        return countries.country_of(self._behind_proxies(request.client, forwarded))

    def _client_of(self, peer: str | None, forwarded: tuple[bytes, ...]) -> str:
        return client_address(peer, [line.decode("latin-1") for line in forwarded], self._trusted)


def _is_logged_in(authorization: bytes | None) -> bool:
    """Tell by the presence of a bearer token; whether it is valid is the shop's business."""
    if not authorization:
        return False
    return authorization[: len(BEARER)].lower() == BEARER and bool(authorization[len(BEARER) :].strip())


def _referrer_domain_of(referer: bytes | None) -> str | None:
    if not referer:
        return None
    parts = referer.split(b"/", PARTS_OF_ADDRESS)
    return _host_of(b"/".join(parts[:PARTS_OF_ADDRESS])) if len(parts) >= PARTS_OF_ADDRESS else None


def _overrides_of(query: bytes) -> Overrides:
    # Whoever asks for a user names a person, which is not remembered.
    return overrides_of_query(query) if USER_ID in query else _remembered_overrides_of(query)


_remembered_overrides_of = lru_cache(VALUES_REMEMBERED_MAX)(overrides_of_query)


@lru_cache(VALUES_REMEMBERED_MAX)
def _host_of(origin: bytes) -> str | None:
    return host_of(origin.decode("latin-1"))


@lru_cache(VALUES_REMEMBERED_MAX)
def _country_of(said: bytes | None) -> str | None:
    return country_of(said.decode("latin-1")) if said else None


@lru_cache(VALUES_REMEMBERED_MAX)
def _language_of(accepted: bytes) -> str | None:
    first = accepted.decode("latin-1").partition(",")[0]
    return language_of(first.partition(";")[0])
