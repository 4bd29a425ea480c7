"""Which country an address is in, by a file of the operator; where there is none, it is unknown."""

import ipaddress
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias, cast

import maxminddb

from adloom.runtime.settings import SettingsError

ADDRESSES_REMEMBERED_MAX: Final = 16_384  # In memory only; the one not asked for the longest goes first.
COUNTRY_LETTERS: Final = 2
_PROBE: Final = "8.8.8.8"

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
CountrySource: TypeAlias = Callable[[IPAddress], str | None]


class Countries:
    """Asks a source about public addresses, and remembers what it said of the latest.

    A country is two letters of ISO 3166, or None if it is unknown.
    """

    def __init__(self, source: CountrySource) -> None:
        self._source = source
        self.find_country = lru_cache(ADDRESSES_REMEMBERED_MAX)(self._find_country)

    def _find_country(self, address: str) -> str | None:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return None
        public = getattr(parsed, "ipv4_mapped", None) or parsed
        return self._source(public) if public.is_global else None


def open_countries(path: str | None) -> Countries | None:
    """Open the file of ADLOOM_GEOIP_FILE in MaxMind's format; None without one."""
    if path is None:
        return None
    if not Path(path).is_file():
        raise SettingsError(f"ADLOOM_GEOIP_FILE is {path!r}: expected a file, and there is none.")
    try:
        reader = maxminddb.open_database(path)
        reader.get(_PROBE)
    except (maxminddb.InvalidDatabaseError, ValueError, OSError) as error:
        raise SettingsError(
            f"ADLOOM_GEOIP_FILE is {path!r}: expected a database of countries in MaxMind's format (.mmdb), "
            f"and it cannot be read as one: {error}"
        ) from error
    return Countries(_find_source(reader))


def _find_source(reader: maxminddb.Reader) -> CountrySource:
    def find_country(address: IPAddress) -> str | None:
        try:
            return _read_country(cast("object", reader.get(address)))
        except (maxminddb.InvalidDatabaseError, ValueError):
            # A damaged part of the file, or an IPv6 address in a file that has none: not known.
            return None

    return find_country


def _read_country(record: object) -> str | None:
    """Find the country in a record of MaxMind or DB-IP (`country.iso_code`), or of IPinfo (`country…`)."""
    if not isinstance(record, dict):
        return None
    fields = cast("dict[str, object]", record)
    country = fields.get("country_code") or fields.get("country")
    if isinstance(country, dict):
        country = cast("dict[str, object]", country).get("iso_code")
    return country.upper() if isinstance(country, str) and len(country) == COUNTRY_LETTERS else None
