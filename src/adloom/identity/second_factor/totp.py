"""Codes of authenticator apps, by RFC 6238: HMAC-SHA1 over the number of the half minute, six digits; and the picture that an app reads its secret off."""

# pure

import base64
import hashlib
import hmac
import io
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

DIGITS: Final = 6
STEP_SECONDS: Final = 30
# Clocks of phones differ: the codes just before and after count too.
STEPS_AROUND: Final = 1
ISSUER: Final = "Adloom"
GROUP_LENGTH: Final = 4


def make_code(secret: bytes, step: int, *, digits: int = DIGITS) -> str:
    digest = hmac.new(secret, step.to_bytes(8, "big"), hashlib.sha1).digest()
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return str(number % 10**digits).zfill(digits)


def find_step(secret: bytes, code: str, *, now: datetime, after: int) -> int | None:
    """Return the half minute that a code is of; None for a wrong code, and for one of or before `after`."""
    current = int(now.timestamp()) // STEP_SECONDS
    found: int | None = None
    # Every one is compared, so that the time says nothing.
    for step in range(current - STEPS_AROUND, current + STEPS_AROUND + 1):
        if hmac.compare_digest(make_code(secret, step).encode(), code.encode()) and step > after:
            found = step
    return found


def clean_code(typed: str) -> str:
    """Take out what people type between the parts of a code."""
    return "".join(typed.split()).replace("-", "").lower()


def encode_secret(secret: bytes) -> str:
    """Write a secret as apps take it when it is typed."""
    return base64.b32encode(secret).decode().rstrip("=")


def make_app_url(secret: bytes, email: str) -> str:
    """Return the address that an app reads off the picture."""
    label = quote(f"{ISSUER}:{email}", safe="")
    query = urlencode(
        {"secret": encode_secret(secret), "issuer": ISSUER, "digits": DIGITS, "period": STEP_SECONDS}
    )
    return f"otpauth://totp/{label}?{query}"


def group(text: str) -> str:
    """Write a long code in groups, for people."""
    return "-".join(text[at : at + GROUP_LENGTH] for at in range(0, len(text), GROUP_LENGTH))


def draw_qr_code(text: str) -> str:
    """Return an SVG to put into a page; black on white in every theme, because cameras want contrast."""
    import segno  # noqa: PLC0415 - few people set one up, and every process that logs people in would load it

    out = io.BytesIO()
    segno.make(text, error="m", micro=False).save(
        out,
        kind="svg",
        scale=5,
        border=4,
        dark="#000",
        light="#fff",
        xmldecl=False,
        svgclass="al-qr",
        nl=False,
    )
    return out.getvalue().decode()
