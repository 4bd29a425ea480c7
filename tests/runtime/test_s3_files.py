"""Files in a bucket: against a real server of the protocol, and signatures against Amazon's own library."""

import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from datetime import datetime

import httpx
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.clock import SystemClock
from adloom.core.setting import SecretValueError
from adloom.runtime.files.place import find_folder, open_files, parse_files_url
from adloom.runtime.files.signing import StoreKey, encode_path, sign_request
from adloom.runtime.files.store import FilesAwayError, FileStore
from adloom.runtime.ports import find_port
from tests.support.for_each import for_each

KEY = StoreKey(access="AKIDEXAMPLE", secret="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", region="eu-central-1")
START_SECONDS_MAX = 60.0
# The server wants to see a signature, and checks none.
SOMEBODY = (
    "AWS4-HMAC-SHA256 Credential=key/20261117/eu-central-1/s3/aws4_request, SignedHeaders=host, Signature=0"
)


@pytest.fixture(scope="module")
def s3_url() -> Generator[str]:
    """Run an S3 server, with one bucket."""
    port = find_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                answer = httpx.put(f"http://127.0.0.1:{port}/pictures", headers={"host": f"127.0.0.1:{port}"})
                assert answer.status_code == 200, answer.text
                break
            except httpx.TransportError:
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.1)
        yield f"s3://key:a%2Fsecret@127.0.0.1:{port}/pictures/of/adloom?region=eu-central-1&tls=off"
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
async def files(s3_url: str) -> AsyncGenerator[FileStore]:
    async with open_files(parse_files_url(s3_url), SystemClock()) as store:
        yield store


async def read(files: FileStore, key: str, first: int = 0, count: int | None = None) -> bytes | None:
    async with files.open(key) as file:
        if file is None:
            return None
        wanted = file.size - first if count is None else count
        return b"".join([part async for part in file.read(first, wanted)])


async def test_a_file_is_written_read_in_parts_and_deleted(files: FileStore, s3_url: str) -> None:
    data = bytes(range(256)) * 2_000

    await files.write("ab/one.jpg", data, "image/jpeg")
    await files.write("ab/one.jpg", data, "image/jpeg")

    assert await read(files, "ab/one.jpg") == data
    assert await read(files, "ab/one.jpg", 100, 50) == data[100:150]
    port = s3_url.split("@127.0.0.1:")[1].split("/", maxsplit=1)[0]
    async with httpx.AsyncClient() as client:
        stored = await client.head(
            f"http://127.0.0.1:{port}/pictures/of/adloom/ab/one.jpg", headers={"authorization": SOMEBODY}
        )
    assert stored.headers["content-type"] == "image/jpeg"
    await files.delete(["ab/one.jpg", "ab/none.jpg"])
    assert await read(files, "ab/one.jpg") is None


async def test_names_of_creatives_are_kept(files: FileStore) -> None:
    await files.write("ab/c0de/img/a@2x_b-c.png", b"1", "image/png")

    assert await read(files, "ab/c0de/img/a@2x_b-c.png") == b"1"


async def test_a_store_that_does_not_answer_is_away() -> None:
    url = parse_files_url(f"s3://a:b@127.0.0.1:{find_port()}/pictures?tls=off")
    async with open_files(url, SystemClock()) as files:
        with pytest.raises(FilesAwayError):
            await files.write("a", b"1", "")
        with pytest.raises(FilesAwayError):
            await read(files, "a")


async def test_a_bucket_that_is_not_there_is_away(s3_url: str) -> None:
    async with open_files(s3_url.replace("/pictures/", "/nothing/"), SystemClock()) as files:
        with pytest.raises(FilesAwayError, match="404"):
            await files.write("a", b"1", "")


@given(
    path=st.text(st.sampled_from("abcXYZ019-_.~@ +%é/"), min_size=1, max_size=30).map(
        lambda text: f"/bucket/{text}"
    ),
    method=st.sampled_from(["GET", "PUT", "DELETE", "HEAD"]),
    content_type=st.sampled_from(["image/png", "text/html;  charset=utf-8"]),
    payload=st.binary(max_size=20),
)
def test_signatures_are_those_of_amazons_library(
    path: str, method: str, content_type: str, payload: bytes
) -> None:
    request = AWSRequest(
        method,
        f"https://s3.example.com{encode_path(path)}",
        data=payload,
        headers={"Content-Type": content_type},
    )
    S3SigV4Auth(Credentials(KEY.access, KEY.secret), "s3", KEY.region).add_auth(request)
    theirs = dict(request.headers)

    ours = sign_request(
        KEY,
        method=method,
        host="s3.example.com",
        path=path,
        query={},
        headers={"Content-Type": content_type},
        payload_sha256=theirs["X-Amz-Content-SHA256"],
        now=datetime.strptime(theirs["X-Amz-Date"], "%Y%m%dT%H%M%S%z"),
    )

    assert ours["authorization"] == theirs["Authorization"]


@for_each(
    "url",
    [
        "",
        "/folder",
        "http://a/b",
        "s3://bucket",
        "s3://key@host/bucket",
        "s3://key:secret@host/",
        "s3://key:secret@host:port/bucket",
        "file://host/a",
        "file:a",
    ],
)
def test_an_address_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(SecretValueError, match="s3://"):
        parse_files_url(url)


def test_a_folder_is_an_address_too() -> None:
    assert str(find_folder(parse_files_url("file:///var/lib/my%20files"))) == "/var/lib/my files"
