"""Signatures of requests to S3-compatible stores: AWS Signature Version 4, in headers."""

# pure

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote

import msgspec

ALGORITHM: Final = "AWS4-HMAC-SHA256"
SERVICE: Final = "s3"


class StoreKey(msgspec.Struct, frozen=True, kw_only=True):
    """The key of an account of the store, and the region that it signs for."""

    access: str
    secret: str
    region: str


def sign_request(  # noqa: PLR0913 - all that is signed
    key: StoreKey,
    *,
    method: str,
    host: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    payload_sha256: str,
    now: datetime,
) -> dict[str, str]:
    """Return the headers of a request with its signature; `path` is not encoded yet."""
    stamp = f"{now:%Y%m%dT%H%M%SZ}"
    signed = {
        **{name.lower(): " ".join(value.split()) for name, value in headers.items()},
        "host": host,
        "x-amz-content-sha256": payload_sha256,
        "x-amz-date": stamp,
    }
    names = sorted(signed)
    request = "\n".join(
        [
            method,
            encode_path(path),
            encode_query(query),
            *(f"{name}:{signed[name]}" for name in names),
            "",
            ";".join(names),
            payload_sha256,
        ]
    )
    scope = f"{now:%Y%m%d}/{key.region}/{SERVICE}/aws4_request"
    text = "\n".join([ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
    secret = f"AWS4{key.secret}".encode()
    for part in (*scope.split("/"), text):
        secret = hmac.digest(secret, part.encode(), "sha256")
    signature = f"Credential={key.access}/{scope}, SignedHeaders={';'.join(names)}, Signature={secret.hex()}"
    return {**signed, "authorization": f"{ALGORITHM} {signature}"}


def encode_path(path: str) -> str:
    return quote(path, safe="/-_.~")


def encode_query(query: Mapping[str, str]) -> str:
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)
