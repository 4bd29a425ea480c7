"""The sender of a request by its headers and address, behind proxies that are trusted or not."""

from ipaddress import ip_address, ip_network

import pytest

from adloom.events.ingest.ivt.detector import (
    FORWARDED_BYTES_CACHED_MAX,
    PEER_EVENTS_MIN,
    SENDERS_CACHED_MAX,
    NullDetector,
    TrafficDetector,
)
from adloom.events.ingest.ivt.flags import NO_FLAGS, UNKNOWN_SENDER, describe_sender
from adloom.events.ingest.ivt.minute_counts import MinuteCounts
from adloom.events.log.event import Mark
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.http.networks import Networks
from tests.events.builders import NOW, a_token
from tests.events.edge import a_report, an_edge
from tests.support.for_each import for_each

SECOND = NOW.timestamp()
PROXIES = [ip_network("192.0.2.0/24")]
CLOUDS = Networks([ip_network("198.51.100.0/24"), ip_network("2001:db8:c::/48"), ip_network("127.0.0.9")])


def a_detector(limit: int = 0) -> TrafficDetector:
    return TrafficDetector(
        lambda agent: b"bot" in agent,
        trusted=PROXIES,
        data_centers=CLOUDS,
        impressions=MinuteCounts(limit),
        clicks=MinuteCounts(limit),
        unpaid=MinuteCounts(limit),
    )


def a_request(client: str | None = "203.0.113.7", **headers: str | list[str]) -> FastRequest:
    pairs = [
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    return FastRequest(b"POST", b"/banners/events/impression", headers=pairs, client=client)


@for_each(
    ("client", "forwarded", "address"),
    [
        ("203.0.113.7", [], "203.0.113.7"),
        ("::ffff:203.0.113.7", [], "203.0.113.7"),
        ("2001:db8:1:2::9", [], "2001:db8:1:2::9"),
        ("198.51.100.9", [], "198.51.100.9"),
        ("127.0.0.1", [], "127.0.0.1"),
        # An untrusted sender may write anything there.
        ("203.0.113.7", ["198.51.100.1"], "203.0.113.7"),
        ("192.0.2.1", ["203.0.113.9"], "203.0.113.9"),
        ("192.0.2.1", ["1.1.1.1, 203.0.113.9", "192.0.2.2"], "203.0.113.9"),
        ("192.0.2.1", ["::ffff:203.0.113.9"], "203.0.113.9"),
        ("192.0.2.1", ["fe80::1%\xff"], "fe80::1%\xff"),
    ],
)
def test_the_sender_is_the_nearest_address_that_is_not_a_trusted_proxy(
    client: str, forwarded: list[str], address: str
) -> None:
    detector = a_detector()

    for _ in range(2):  # The second time it is remembered.
        sender = detector.identify_sender(a_request(client, x_forwarded_for=forwarded))
        assert sender == describe_sender(ip_address(address), data_centers=CLOUDS)


@pytest.mark.parametrize(
    ("client", "forwarded"),
    [("192.0.2.1", []), ("192.0.2.1", ["192.0.2.3"]), (None, []), ("", []), ("not an address", [])],
)
def test_a_trusted_server_that_names_no_client_is_an_unknown_sender(
    client: str | None, forwarded: list[str]
) -> None:
    assert a_detector().identify_sender(a_request(client, x_forwarded_for=forwarded)) is UNKNOWN_SENDER


def test_a_proxy_chain_too_long_for_the_cache_is_parsed_too() -> None:
    chain = ", ".join(["1.1.1.1"] * FORWARDED_BYTES_CACHED_MAX) + ", 203.0.113.9"

    sender = a_detector().identify_sender(a_request("192.0.2.1", x_forwarded_for=chain))

    assert sender.address == ip_address("203.0.113.9")


@pytest.mark.parametrize("header", ["sec_purpose", "purpose", "x_moz"])
def test_a_prefetch_request_is_marked(header: str) -> None:
    request = a_request(**{header: "prefetch"})

    assert a_detector().identify_sender(request).marks == (Mark.PREFETCH,)


def test_a_request_with_another_purpose_header_is_not_marked() -> None:
    assert a_detector().identify_sender(a_request(purpose="preview")).marks == ()


def test_a_sender_is_marked_by_its_headers_and_its_address() -> None:
    request = a_request("198.51.100.9", user_agent="a bot", sec_purpose="prefetch;prerender")

    assert a_detector().identify_sender(request).marks == (Mark.CRAWLER, Mark.PREFETCH, Mark.DATA_CENTER)


def test_addresses_of_one_ipv6_network_are_counted_together() -> None:
    detector = a_detector(limit=1)

    marks = [
        detector.flag_event(detector.identify_sender(a_request(client)), SECOND).marks
        for client in ("2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:2:3::1")
    ]

    assert marks == [(), (Mark.ADDRESS_FLOOD,), ()]
    assert detector.marked == {
        Mark.CRAWLER: 0,
        Mark.PREFETCH: 0,
        Mark.DATA_CENTER: 0,
        Mark.ADDRESS_FLOOD: 1,
    }


@pytest.mark.parametrize("client", ["127.0.0.1", "192.168.1.1", "192.0.2.1", None])
def test_an_internal_address_never_floods(client: str | None) -> None:
    detector = a_detector(limit=1)
    sender = detector.identify_sender(a_request(client))

    assert all(detector.flag_event(sender, SECOND) is NO_FLAGS for _ in range(10))


def test_the_null_detector_flags_nothing() -> None:
    trusting = NullDetector()

    assert trusting.flag_event(trusting.identify_sender(a_request(user_agent="a bot")), SECOND) is NO_FLAGS


@pytest.mark.parametrize("path", [b"/i/", b"/c/"])
async def test_a_pixel_and_a_link_are_flagged_too(path: bytes) -> None:
    async with an_edge(detector=a_detector(limit=1)) as edge:
        for slot in range(2):
            await edge.ask(b"GET", path + a_token(slot=slot), client="203.0.113.7")
        headers = {"user-agent": "a bot"}
        await edge.ask(b"GET", path + a_token(slot=2), headers=headers, client="203.0.113.7")

    assert [event.marks for event in edge.store.events] == [(), (Mark.ADDRESS_FLOOD,), (Mark.CRAWLER,)]
    assert [event.client_network for event in edge.store.events] == [None, "203.0.113.0/24", None]


async def test_a_head_request_does_not_count_towards_a_flood() -> None:
    async with an_edge(detector=a_detector(limit=1)) as edge:
        await edge.ask(b"HEAD", b"/i/" + a_token(), client="203.0.113.7")
        await edge.ask(b"GET", b"/i/" + a_token(), client="203.0.113.7")

    assert [event.marks for event in edge.store.events] == [()]


async def test_a_doubtful_event_is_accepted_and_neither_valid_nor_billable() -> None:
    async with an_edge(detector=a_detector()) as edge:
        token = a_token().decode()
        await edge.post("impression", a_report(trackingToken=token, occurredAt="2020-01-01T00:00:00Z"))
        await edge.post("impression", a_report(trackingToken=token), headers={"purpose": "prefetch"})

    assert [event.marks for event in edge.store.events] == [(Mark.OCCURRED_AT_REPLACED,), (Mark.PREFETCH,)]
    assert [event.is_billable for event in edge.store.events] == [True, False]


def test_senders_behind_an_unreadable_header_count_as_one() -> None:
    detector = a_detector(limit=2)

    floods = [
        bool(
            detector.flag_event(
                detector.identify_sender(a_request("192.0.2.1", x_forwarded_for=f"1.1.1.{number}, ?")), SECOND
            ).marks
        )
        for number in range(4)
    ]

    assert floods == [False, False, True, True]


def test_senders_are_known_in_two_generations_of_bounded_size() -> None:
    detector = a_detector()
    often = detector.identify_sender(a_request("203.0.113.7"))

    for number in range(3 * SENDERS_CACHED_MAX):
        detector.identify_sender(a_request(f"51.{number >> 16}.{number >> 8 & 255}.{number & 255}"))
        if number % 1_000 == 0:
            assert detector.identify_sender(a_request("203.0.113.7")).counts is often.counts

    generations = detector._senders, detector._older_senders  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert all(0 < len(one) <= SENDERS_CACHED_MAX for one in generations)


def test_one_private_peer_for_all_events_is_noticed() -> None:
    def count(*clients: str) -> str | None:
        detector = a_detector(limit=10_000)
        for client in clients:
            detector.flag_event(detector.identify_sender(a_request(client)), SECOND)
        return detector.peers.only_internal

    enough = ["127.0.0.1"] * PEER_EVENTS_MIN
    assert count(*enough) == "127.0.0.1"
    assert count(*enough[1:]) is None
    assert count(*enough, "10.0.0.1") is None
    assert count(*enough, "203.0.113.7") is None
    assert count(*enough, "192.0.2.1") is None, "a trusted proxy that names no client"
    assert count(*["203.0.113.7"] * PEER_EVENTS_MIN) is None
