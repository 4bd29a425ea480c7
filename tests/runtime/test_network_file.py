"""Files of networks: their content, and errors that name the line."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from adloom.runtime.settings import NetworkFileError, SettingsError, read_delivery_settings, read_networks
from tests.runtime.test_settings import GOOD

A_LIST = """\ufeff# Clouds, as of today
203.0.113.0/24        # one of them
198.51.100.7

2001:db8:f00::/40
10.0.0.5/8
"""


def a_file(folder: Path, text: str) -> Path:
    path = folder / "clouds.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_networks_and_addresses_are_read_and_comments_are_ignored(tmp_path: Path) -> None:
    assert read_networks(a_file(tmp_path, A_LIST)) == tuple(
        ip_network(network)
        for network in ("203.0.113.0/24", "198.51.100.7/32", "2001:db8:f00::/40", "10.0.0.0/8")
    )


def test_the_error_for_a_bad_line_names_it(tmp_path: Path) -> None:
    path = a_file(tmp_path, "# clouds\n203.0.113.0/24\n203.0.113.0/33 # too long\n")

    with pytest.raises(NetworkFileError, match=r"^line 3 is '203\.0\.113\.0/33'$"):
        read_networks(path)


def test_the_error_for_an_unreadable_file_says_why(tmp_path: Path) -> None:
    binary = tmp_path / "clouds.bin"
    binary.write_bytes(b"\xff\xfe\x00")

    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(NetworkFileError, match=r"^it cannot be read: "):
            read_networks(path)
    for path in (binary, Path("a\0b")):
        with pytest.raises(NetworkFileError, match=r"^it is no text: "):
            read_networks(path)


def test_the_error_for_a_bad_network_file_names_the_setting_and_the_line(tmp_path: Path) -> None:
    path = a_file(tmp_path, "nonsense")

    with pytest.raises(SettingsError) as refused:
        read_delivery_settings({**GOOD, "ADLOOM_DATA_CENTERS_FILE": str(path)})

    assert str(refused.value) == (
        f"ADLOOM_DATA_CENTERS_FILE is {str(path)!r}: "
        "expected a file with a network like 192.0.2.0/24 a line, but line 1 is 'nonsense'."
    )


def test_the_setting_returns_the_networks_of_its_file(tmp_path: Path) -> None:
    path = a_file(tmp_path, "203.0.113.0/24")

    settings = read_delivery_settings({**GOOD, "ADLOOM_DATA_CENTERS_FILE": str(path)})

    assert settings.data_centers == (ip_network("203.0.113.0/24"),)
