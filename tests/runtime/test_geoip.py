"""Countries of addresses by an operator's file."""

from pathlib import Path

import pytest

from adloom.runtime.http.geoip import ADDRESSES_REMEMBERED_MAX, Countries, open_countries
from adloom.runtime.settings import SettingsError
from tests.support.mmdb import Value, database

RECORDS: dict[str, Value] = {
    "93.184.216.0/24": {"country": {"iso_code": "US", "geoname_id": 6252001}},
    "194.150.168.0/23": {"country": "de"},
    "81.2.69.0/24": {"country": "United Kingdom", "country_code": "GB"},
    "8.8.4.0/24": {"continent": {"code": "NA"}},
    "8.8.8.0/24": "not a record of a country",
    "10.0.0.0/8": {"country": {"iso_code": "FR"}},
    "2a00:1450::/32": {"country": {"iso_code": "IE"}},
}


def written(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("address", "country"),
    [
        ("93.184.216.34", "US"),
        ("::ffff:93.184.216.34", "US"),
        ("194.150.168.168", "DE"),
        ("81.2.69.142", "GB"),
        ("2a00:1450:4001::1", "IE"),
        ("8.8.4.4", None),
        ("8.8.8.8", None),
        ("1.1.1.1", None),
        ("2001:4860:4860::8888", None),
        ("10.1.2.3", None),
        ("::ffff:10.1.2.3", None),
        ("127.0.0.1", None),
        ("::1", None),
        ("fe80::1%eth0", None),
        ("unknown", None),
        ("", None),
    ],
)
def test_the_file_has_the_country_of_public_addresses(
    tmp_path: Path, address: str, country: str | None
) -> None:
    countries = open_countries(written(tmp_path / "countries.mmdb", database(RECORDS)))
    assert countries is not None

    assert countries.find_country(address) == country


def test_an_ipv4_file_has_no_ipv6_address(tmp_path: Path) -> None:
    content = database({"93.184.216.0/24": {"country": {"iso_code": "US"}}}, ip_version=4)

    countries = open_countries(written(tmp_path / "four.mmdb", content))
    assert countries is not None

    assert countries.find_country("93.184.216.34") == "US"
    assert countries.find_country("2a00:1450:4001::1") is None


def test_no_country_is_known_without_a_file() -> None:
    assert open_countries(None) is None


def test_a_missing_file_prevents_the_start(tmp_path: Path) -> None:
    path = str(tmp_path / "missing.mmdb")

    with pytest.raises(SettingsError, match=r"ADLOOM_GEOIP_FILE is '.*missing\.mmdb': expected a file"):
        open_countries(path)


def test_a_folder_instead_of_a_file_prevents_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="ADLOOM_GEOIP_FILE"):
        open_countries(str(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a database",
        database(RECORDS)[:200],
        database(RECORDS)[:-40],
        b"\xff" * 600 + database(RECORDS)[600:],
    ],
    ids=["empty", "text", "only its beginning", "without its end", "damaged tree"],
)
def test_an_unreadable_file_prevents_the_start(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SettingsError, match=r"expected a database of countries in MaxMind's format"):
        open_countries(written(tmp_path / "broken.mmdb", content))


def test_an_address_is_looked_up_once() -> None:
    asked: list[str] = []
    countries = Countries(lambda address: asked.append(str(address)))

    for _ in range(3):
        assert countries.find_country("93.184.216.34") is None

    assert asked == ["93.184.216.34"]
    assert countries.find_country.cache_info().maxsize == ADDRESSES_REMEMBERED_MAX
