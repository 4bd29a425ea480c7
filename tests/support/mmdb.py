"""A writer of small databases in MaxMind's format, which has readers only."""

import ipaddress
from collections.abc import Mapping

MARKER = b"\xab\xcd\xefMaxMind.com"
Value = str | int | bytes | list[str] | Mapping[str, "Value"]  # Bytes are already encoded.


def database(records: Mapping[str, Value], *, ip_version: int = 6) -> bytes:
    """Write a database from networks to records; IPv4 networks lie where readers of IPv6 look for them."""
    tree: list[list[int | bytes | None]] = [[None, None]]
    for network, record in records.items():
        _put(tree, _bits(ipaddress.ip_network(network), ip_version), _encoded(record))
    data, places = bytearray(), dict[bytes, int]()
    nodes = bytearray()
    for node in tree:
        for side in node:
            if isinstance(side, bytes) and side not in places:
                places[side] = len(data)
                data += side
            nodes += _pointer(side, places, len(tree)).to_bytes(3, "big")
    metadata = _encoded(
        {
            "binary_format_major_version": _number(5, 2, 2),
            "binary_format_minor_version": _number(5, 2, 0),
            "build_epoch": _number(9, 8, 1),
            "database_type": "Test-Country",
            "description": {"en": "of the tests"},
            "ip_version": _number(5, 2, ip_version),
            "languages": ["en"],
            "node_count": len(tree),
            "record_size": _number(5, 2, 24),
        }
    )
    return bytes(nodes) + bytes(16) + bytes(data) + MARKER + metadata


def _bits(network: ipaddress.IPv4Network | ipaddress.IPv6Network, ip_version: int) -> str:
    offset = 96 if ip_version == 6 and network.version == 4 else 0
    width = network.max_prefixlen
    return "0" * offset + f"{int(network.network_address):0{width}b}"[: network.prefixlen]


def _put(tree: list[list[int | bytes | None]], bits: str, record: bytes) -> None:
    node = 0
    for bit in bits[:-1]:
        below = tree[node][int(bit)]
        if below is None:
            below = tree[node][int(bit)] = len(tree)
            tree.append([None, None])
        assert isinstance(below, int), "networks of the tests do not overlap"
        node = below
    tree[node][int(bits[-1])] = record


def _pointer(side: int | bytes | None, places: Mapping[bytes, int], node_count: int) -> int:
    if isinstance(side, bytes):
        return node_count + 16 + places[side]
    return node_count if side is None else side


def _encoded(value: Value) -> bytes:
    match value:
        case str():
            return _head(2, len(value.encode())) + value.encode()
        case bytes():
            return value
        case int():
            return _number(6, 4, value)
        case list():
            return _head(11, len(value)) + b"".join(map(_encoded, value))
        case _:
            pairs = b"".join(_encoded(key) + _encoded(one) for key, one in value.items())
            return _head(7, len(value)) + pairs


def _number(kind: int, size: int, value: int) -> bytes:
    """Encode a number of a certain width, which the reader in C insists on."""
    return _head(kind, size) + value.to_bytes(size, "big")


def _head(kind: int, size: int) -> bytes:
    assert size < 29, "values of the tests are short"
    return bytes([kind << 5 | size]) if kind < 8 else bytes([size, kind - 7])
