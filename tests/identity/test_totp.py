"""Codes of authenticator apps."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.identity.second_factor.totp import (
    STEP_SECONDS,
    clean_code,
    draw_qr_code,
    encode_secret,
    find_step,
    group,
    make_app_url,
    make_code,
)

SECRET = b"12345678901234567890"
moments = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - the strategy adds it


@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_the_vectors_of_rfc_6238(seconds: int, code: str) -> None:
    assert make_code(SECRET, seconds // STEP_SECONDS, digits=8) == code


@given(moments, st.integers(-STEP_SECONDS, STEP_SECONDS))
def test_a_clock_may_be_half_a_minute_off_and_a_code_works_once(now: datetime, offset: int) -> None:
    shown = int((now + timedelta(seconds=offset)).timestamp()) // STEP_SECONDS
    code = make_code(SECRET, shown)

    step = find_step(SECRET, code, now=now, after=0)

    assert step is not None
    assert make_code(SECRET, step) == code
    again = find_step(SECRET, code, now=now, after=step)
    assert again is None or again > step


@given(moments, st.integers(2, 1_000_000))
def test_a_code_of_another_time_is_wrong(now: datetime, steps: int) -> None:
    current = int(now.timestamp()) // STEP_SECONDS
    code = make_code(SECRET, current - steps)

    step = find_step(SECRET, code, now=now, after=0)

    # One of a million codes is the same by chance.
    assert step is None or make_code(SECRET, step) == code


@given(st.text(max_size=20))
def test_any_text_can_be_typed(text: str) -> None:
    find_step(SECRET, clean_code(text), now=datetime(2026, 11, 17, tzinfo=UTC), after=0)


def test_an_app_reads_the_secret_off_the_address() -> None:
    parts = urlsplit(make_app_url(SECRET, "ann+x@example.com"))

    assert (parts.scheme, parts.netloc, parts.path) == ("otpauth", "totp", "/Adloom%3Aann%2Bx%40example.com")
    query = parse_qs(parts.query)
    assert query == {
        "secret": ["GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"],
        "issuer": ["Adloom"],
        "digits": ["6"],
        "period": ["30"],
    }
    assert encode_secret(SECRET) == query["secret"][0]


def test_codes_are_typed_as_people_do() -> None:
    assert clean_code(" 123 456\n") == "123456"
    assert clean_code("ABCD-efgh") == "abcdefgh"
    assert group("abcdefghijkl") == "abcd-efgh-ijkl"


def test_the_picture_is_an_svg_without_a_script() -> None:
    picture = draw_qr_code(make_app_url(SECRET, "ann@example.com"))

    assert picture.startswith("<svg ")
    assert "script" not in picture
    assert "style=" not in picture
