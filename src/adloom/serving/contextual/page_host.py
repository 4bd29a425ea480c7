"""Whether a request comes from the page that it is about."""

from http import HTTPStatus
from typing import Final

from adloom.core.errors import AdloomError, make_field_error
from adloom.pages.url import NormalizedUrl, normalize_url
from adloom.runtime.http.fast.fast_routes import FastRequest

ORIGIN: Final = b"origin"
REFERER: Final = b"referer"


class SiteHostMismatchError(AdloomError):
    """The page is not of the site, or another page asks in its name."""

    code = "SITE_HOST_MISMATCH"
    status = HTTPStatus.FORBIDDEN


def parse_page_url(text: str) -> NormalizedUrl:
    url = normalize_url(text)
    if url is None:
        raise make_field_error("url", "must be an http or https address of a page")
    return url


def find_sender_host(request: FastRequest) -> str | None:
    """Return the host of the page that a browser sends a request from; an origin that cannot be read is none."""
    sender = request.get_header(ORIGIN) or request.get_header(REFERER)
    url = normalize_url(sender.decode("latin-1")) if sender else None
    return None if url is None else url.host
