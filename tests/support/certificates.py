"""Certificates of an authority of the test, and servers that speak TLS with them."""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

TLS_BEGINS = b"\x16"  # A client that speaks TLS begins with it, and none that does not.
SSL_REQUEST = bytes.fromhex("0000000804d2162f")  # What a client of PostgreSQL begins with that wants TLS.


class TlsFiles(msgspec.Struct, frozen=True):
    """An authority, and a certificate of it for 127.0.0.1."""

    authority: Path
    certificate: Path
    key: Path

    def make_server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


def make_tls_files(folder: Path, *, name: str = "a test") -> TlsFiles:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"the authority of {name}")])
    now = datetime.now(UTC)
    begun = (
        x509.CertificateBuilder()
        .issuer_name(authority_name)
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
    )
    key_id = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = (
        begun.subject_name(authority_name)
        .public_key(authority_key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_id, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        begun.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")]))
        .public_key(server_key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_id), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    files = TlsFiles(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    files.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    files.key.chmod(0o644)  # The servers of the tests run as another user.
    return files


@contextlib.asynccontextmanager
async def speaking_tls(files: TlsFiles, port: int, *, is_postgres: bool = False) -> AsyncGenerator[int]:
    """Put TLS in front of a server: those of the wheels are built without it. Plain connections are refused."""
    context = files.make_server_context()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(
            asyncio.CancelledError, ConnectionError, ssl.SSLError, asyncio.IncompleteReadError
        ):
            if is_postgres:
                if await reader.readexactly(len(SSL_REQUEST)) != SSL_REQUEST:
                    writer.close()
                    return
                writer.write(b"S")
                await writer.start_tls(context)
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, far_writer))
                group.create_task(_pass_on(far_reader, writer))

    server = await asyncio.start_server(relay, "127.0.0.1", ssl=None if is_postgres else context)
    async with server:
        yield server.sockets[0].getsockname()[1]


@contextlib.asynccontextmanager
async def taking_both(files: TlsFiles, port: int) -> AsyncGenerator[int]:
    """Take encrypted and plain connections on one port: sentinels of the wheel watch a server by plain ones."""
    context, loop = files.make_server_context(), asyncio.get_running_loop()

    async def relay(accepted: socket.socket) -> None:
        with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError):
            first = await _peek(accepted)
            reader = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(reader)
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, accepted, ssl=context if first == TLS_BEGINS else None
            )
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, far_writer))
                group.create_task(_pass_on(far_reader, writer))

    async def accept(listening: socket.socket) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                accepted, _ = await loop.sock_accept(listening)
                group.create_task(relay(accepted))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        accepting = loop.create_task(accept(listening))
        yield listening.getsockname()[1]
        accepting.cancel()
        await asyncio.wait([accepting])


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while piece := await source.read(65_536):
            target.write(piece)
    target.close()


async def _peek(accepted: socket.socket) -> bytes:
    """Wait for the first byte, and leave it where it is."""
    accepted.settimeout(0)
    loop, is_there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(accepted, is_there.set)
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(accepted)
    return accepted.recv(1, socket.MSG_PEEK)
