"""The client against a real server, and against hosts that lead back to us."""

import asyncio
import gzip
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast

import httpcore
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from adloom.core.setting import SettingValueError
from adloom.runtime.outbound.address import Address
from adloom.runtime.outbound.client import (
    REDIRECTS_MAX,
    BodyLimit,
    CheckedBackend,
    OutboundClient,
    open_outbound,
)
from adloom.runtime.outbound.failure import FailureKind, OutboundError
from adloom.runtime.outbound.settings import LocalHost, OutboundSettings, parse_local_hosts
from tests.support.for_each import for_each
from tests.support.website import Website, head, running_website

PUBLIC = "93.184.216.34"


class Dialer(httpcore.AsyncNetworkBackend):
    """Takes what was dialled down, and connects to a server of the test instead."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._backend = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())
        self.dialled: list[tuple[str, int]] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,  # noqa: ARG002 - likewise
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - likewise
    ) -> httpcore.AsyncNetworkStream:
        self.dialled.append((host, port))
        return await self._backend.connect_tcp("127.0.0.1", self._port, timeout)


class Dns:
    """Answers with one list of addresses after another, the last for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str) -> list[Address]:
        self.asked.append(host)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        return [ip_address(text) for text in answer]


@pytest.fixture
async def website() -> AsyncIterator[Website]:
    async with running_website() as website:
        yield website


@pytest.fixture
async def canary() -> AsyncIterator[Website]:
    """A server of our own network that nobody outside may reach."""
    async with running_website() as website:
        yield website
        assert website.connections == 0


def settings_for(website: Website) -> OutboundSettings:
    return OutboundSettings(
        user_agent="TestBot/1.0 (+https://example.com/bot)",
        local_hosts={"a.test": LocalHost("127.0.0.1", website.port)},
    )


@pytest.fixture
async def client(website: Website) -> AsyncIterator[OutboundClient]:
    async with open_outbound(settings_for(website), seconds_max=1.5) as client:
        yield client


async def failure_of(client: OutboundClient, url: str, **options: Any) -> FailureKind:
    with pytest.raises(OutboundError) as raised:
        await client.get(url, **options)
    assert str(raised.value)
    return raised.value.kind


def refuse(url: str) -> str:
    return f"{url} is elsewhere"


def deflate_without_header(body: bytes) -> bytes:
    return zlib.compress(body)[2:-4]


async def test_a_page_is_fetched_with_an_honest_name_and_nothing_secret(
    client: OutboundClient, website: Website
) -> None:
    website.say("/a?b=1", "hello", Set_Cookie="id=1")

    await client.get("https://a.test/a?b=1#part")
    answer = await client.get("https://a.test/a?b=1")

    assert (answer.status, answer.body, answer.url) == (200, b"hello", "https://a.test/a?b=1")
    sent = website.asked[1].headers
    assert sent["user-agent"] == "TestBot/1.0 (+https://example.com/bot)"
    assert sent["accept-encoding"] == "gzip, deflate"
    assert sent["host"] == "a.test"
    assert not {"cookie", "authorization", "referer"} & set(sent)
    assert website.connections == 1


async def test_up_to_five_redirects_are_followed(client: OutboundClient, website: Website) -> None:
    for number in range(REDIRECTS_MAX + 1):
        website.redirect(f"/{number}", f"/{number + 1}")
    website.say(f"/{REDIRECTS_MAX + 1}", "the end")

    answer = await client.get("http://a.test/1")

    assert (answer.body, answer.url) == (b"the end", f"http://a.test/{REDIRECTS_MAX + 1}")
    assert await failure_of(client, "http://a.test/0") is FailureKind.TOO_MANY_REDIRECTS


async def test_a_redirect_loop_ends(client: OutboundClient, website: Website) -> None:
    website.redirect("/a", "/b")
    website.redirect("/b", "/a")

    assert await failure_of(client, "http://a.test/a") is FailureKind.TOO_MANY_REDIRECTS
    assert len(website.asked) == REDIRECTS_MAX + 1


async def test_a_redirect_is_followed_only_where_the_caller_allows_it(
    client: OutboundClient, website: Website
) -> None:
    website.redirect("/a", "/b")

    kind = await failure_of(client, "http://a.test/a", may_follow=refuse)

    assert kind is FailureKind.REDIRECT_REFUSED
    assert website.paths == ["/a"]


@for_each(
    "location",
    [
        "http://127.0.0.1:{port}/",
        "http://127.0.0.1/",
        "https://127.0.0.1/",
        "http://localhost/",
        "http://localhost:{port}/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::127.0.0.1]/",
        "http://[fe80::1%25lo]/",
        "http://0x7f.1/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://017700000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.1/",
        "http://0/",
        "http://0.0.0.0/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://127。0。0。1/",
        "http://a.test@127.0.0.1/",
        "http://a.test:80@127.0.0.1/",
        "http://127.0.0.1#@a.test/",
        "http://127.0.0.1\\@a.test/",
        "http://a.test\\@127.0.0.1/",
        "//127.0.0.1:{port}/",
        "//user:word@a.test/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/_",
        "unix:///run/valkey.sock",
        "javascript:alert(1)",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata/",
        "http://a.test:22/",
        "http://a.test:{port}1/",
        "http://[::1",
        "http://a.test:999999/",
        "http://a.te st/",
        "http://a\x00.test/",
    ],
)
async def test_a_redirect_into_our_own_network_is_not_followed(
    client: OutboundClient, website: Website, canary: Website, location: str
) -> None:
    website.redirect("/", location.format(port=canary.port))

    kind = await failure_of(client, "http://a.test/")

    assert kind in {
        FailureKind.URL_REFUSED,
        FailureKind.ADDRESS_REFUSED,
        FailureKind.NOT_FOUND,
        FailureKind.PROTOCOL,
    }
    assert set(website.paths) == {"/"}


@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"],
        ["::1"],
        ["10.1.2.3"],
        ["169.254.169.254"],
        [PUBLIC, "127.0.0.1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1"],
    ],
    ids="+".join,
)
async def test_a_name_with_a_private_address_is_refused_before_anything_is_dialled(
    canary: Website, answer: list[str]
) -> None:
    dialer, dns = Dialer(canary.port), Dns(answer)
    backend = CheckedBackend({}, resolve=dns, dial=dialer)

    async with open_outbound(OutboundSettings(user_agent="x"), backend=backend) as client:
        assert await failure_of(client, "http://evil.example/") is FailureKind.ADDRESS_REFUSED

    assert (dialer.dialled, dns.asked) == ([], ["evil.example"])


async def test_a_name_that_changes_its_address_is_dialled_where_it_was_checked(website: Website) -> None:
    """DNS rebinding: the second answer is a private one."""
    website.say("/", "first", Connection="close")
    dialer, dns = Dialer(website.port), Dns([PUBLIC], ["127.0.0.1"])
    backend = CheckedBackend({}, resolve=dns, dial=dialer)

    async with open_outbound(OutboundSettings(user_agent="x"), backend=backend) as client:
        assert (await client.get("http://evil.example/")).body == b"first"
        assert dialer.dialled == [(PUBLIC, 80)]
        assert await failure_of(client, "http://evil.example:443/") is FailureKind.ADDRESS_REFUSED

    assert dialer.dialled == [(PUBLIC, 80)]


async def test_a_name_that_dns_does_not_know_is_a_failure() -> None:
    backend = CheckedBackend({}, resolve=Dns([]), dial=Dialer(1))

    async with open_outbound(OutboundSettings(user_agent="x"), backend=backend) as client:
        assert await failure_of(client, "https://nowhere.example/") is FailureKind.NOT_FOUND


async def test_the_next_address_is_tried_where_one_takes_no_connections(website: Website) -> None:
    class Half(Dialer):
        async def connect_tcp(self, host: str, *rest: Any, **more: Any) -> httpcore.AsyncNetworkStream:
            if host != PUBLIC:
                self.dialled.append((host, 0))
                raise httpcore.ConnectError("refused")
            return await super().connect_tcp(host, *rest, **more)

    website.say("/", "found")
    dialer = Half(website.port)
    backend = CheckedBackend({}, resolve=Dns(["2606:4700::1111", PUBLIC]), dial=dialer)

    async with open_outbound(OutboundSettings(user_agent="x"), backend=backend) as client:
        assert (await client.get("http://two.example/")).body == b"found"

    assert [host for host, _ in dialer.dialled] == ["2606:4700::1111", PUBLIC]


async def trickle(writer: asyncio.StreamWriter) -> None:
    writer.write(head(200, {"Content-Type": "text/html"}))
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.2)


async def test_a_server_that_answers_a_byte_at_a_time_is_left_in_time(
    client: OutboundClient, website: Website
) -> None:
    website.replies["/"] = trickle

    async with asyncio.timeout(3):
        assert await failure_of(client, "http://a.test/") is FailureKind.TIMEOUT


async def test_a_server_that_never_answers_is_left_in_time(client: OutboundClient, website: Website) -> None:
    website.delay = 60

    async with asyncio.timeout(3):
        assert await failure_of(client, "http://a.test/") is FailureKind.TIMEOUT


async def test_the_time_is_for_all_redirects_together(client: OutboundClient, website: Website) -> None:
    website.delay = 0.6
    website.redirect("*", "/again")

    async with asyncio.timeout(3):
        assert await failure_of(client, "http://a.test/") is FailureKind.TIMEOUT


async def flood(writer: asyncio.StreamWriter) -> None:
    writer.write(head(200, {"Content-Type": "text/html"}))
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()


async def test_an_endless_body_is_a_failure_or_cut_as_the_caller_asks(
    client: OutboundClient, website: Website
) -> None:
    website.replies["/"] = flood

    assert await failure_of(client, "http://a.test/") is FailureKind.BODY_TOO_LARGE
    answer = await client.get("http://a.test/", limit=BodyLimit(bytes_max=1000, is_cut_taken=True))

    assert answer.body == b"x" * 1000


async def test_a_body_that_is_not_wanted_is_not_read(client: OutboundClient, website: Website) -> None:
    website.replies["/"] = flood

    answer = await client.get("http://a.test/", limit=BodyLimit(is_wanted=lambda _: False))

    assert (answer.status, answer.body) == (200, b"")


async def giant_headers(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(10_000):
        writer.write(f"X-{number}: {'y' * 1000}\r\n".encode())
        await writer.drain()


async def test_giant_headers_are_a_failure(client: OutboundClient, website: Website) -> None:
    website.replies["/"] = giant_headers

    assert await failure_of(client, "http://a.test/") is FailureKind.HEADERS_TOO_LARGE


@pytest.mark.parametrize(
    "said",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
    ],
)
async def test_what_is_no_http_is_a_failure(client: OutboundClient, website: Website, said: bytes) -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        writer.close()

    website.replies["/"] = answer

    assert await failure_of(client, "http://a.test/") is FailureKind.PROTOCOL


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("Deflate", deflate_without_header),
    ],
)
async def test_a_compressed_body_is_read(
    client: OutboundClient, website: Website, encoding: str, compress: Any
) -> None:
    body = b"Some text with some words. " * 40
    website.say("/", compress(body), Content_Encoding=encoding)

    assert (await client.get("http://a.test/")).body == body


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_bomb_is_a_failure(client: OutboundClient, website: Website, encoding: str) -> None:
    compress = gzip.compress if encoding == "gzip" else zlib.compress
    website.say("/", compress(bytes(1_500_000)), Content_Encoding=encoding)

    assert await failure_of(client, "http://a.test/") is FailureKind.COMPRESSION


async def test_a_large_bomb_never_exceeds_the_bound(client: OutboundClient, website: Website) -> None:
    website.say("/", gzip.compress(bytes(50_000_000)), Content_Encoding="gzip")

    kind = await failure_of(client, "http://a.test/")

    assert kind in {FailureKind.COMPRESSION, FailureKind.BODY_TOO_LARGE}


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"not gzip"),
        ("deflate", b"\xff\xff\xff"),
        ("br", b"x"),
        ("gzip, gzip", b"x"),
        ("gzip", gzip.compress(b"a" * 1000, mtime=0)[:-9]),
    ],
)
async def test_a_compression_that_is_broken_or_unknown_is_a_failure(
    client: OutboundClient, website: Website, encoding: str, body: bytes
) -> None:
    website.say("/", body, Content_Encoding=encoding)

    assert await failure_of(client, "http://a.test/") is FailureKind.COMPRESSION


async def test_a_host_that_takes_no_connections_is_a_failure() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        settings = OutboundSettings(
            user_agent="x", local_hosts={"a.test": LocalHost("127.0.0.1", unused.getsockname()[1])}
        )
        async with open_outbound(settings) as client:
            assert await failure_of(client, "http://a.test/") is FailureKind.NOT_REACHED


def certificate_for(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate of this name, and a client's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain = folder / "chain.pem"
    pem = serialization.Encoding.PEM
    chain.write_bytes(
        certificate.public_bytes(pem)
        + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain)
    return server, ssl.create_default_context(cadata=certificate.public_bytes(pem).decode())


@pytest.mark.parametrize("name", ["paper.example", "other.example"])
async def test_a_certificate_is_checked_against_the_host_name(name: str, tmp_path: Path) -> None:
    """The connection goes to the checked address, the host name goes into SNI and must be the certificate's."""
    server_context, client_context = certificate_for("paper.example", tmp_path)
    asked_for: list[str | None] = []
    server_context.sni_callback = lambda _socket, asked, _context: asked_for.append(asked)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head(200, {"Content-Length": "2"}) + b"ok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_context)
    dialer = Dialer(server.sockets[0].getsockname()[1])
    backend = CheckedBackend({}, resolve=Dns([PUBLIC]), dial=dialer)
    async with (
        server,
        open_outbound(
            OutboundSettings(user_agent="x"), backend=backend, ssl_context=client_context
        ) as client,
    ):
        if name == "paper.example":
            assert (await client.get(f"https://{name}/")).body == b"ok"
        else:
            assert await failure_of(client, f"https://{name}/") is FailureKind.CERTIFICATE

    assert asked_for == [name]
    assert dialer.dialled == [(PUBLIC, 443)]


@pytest.mark.parametrize(
    "url", ["http:///x", "http:/", "http:", "", "x", "//a.test/", "http://a.test/" + "x" * 2048]
)
async def test_what_is_no_url_is_refused(client: OutboundClient, url: str) -> None:
    assert await failure_of(client, url) is FailureKind.URL_REFUSED


def test_local_hosts_are_parsed() -> None:
    found = parse_local_hosts("a.test=127.0.0.1:9001, B.test=[::1]:9002,")

    assert found == {"a.test": LocalHost("127.0.0.1", 9001), "b.test": LocalHost("::1", 9002)}


@for_each(
    "text",
    [
        "a.test",
        "a.test=",
        "a.test=127.0.0.1",
        "a.test=host:80",
        "=127.0.0.1:80",
        "a=127.0.0.1:0",
        "a=127.0.0.1:x",
    ],
)
def test_a_wrong_local_host_is_named(text: str) -> None:
    with pytest.raises(SettingValueError) as raised:
        parse_local_hosts(f"b.test=127.0.0.1:1,{text}")

    assert raised.value.part == text
