"""Looks for the token on a site."""

from typing import Final
from urllib.parse import urlsplit

from adloom.pages.verification.model import BYTES_MAX, Verification, find_mistake
from adloom.runtime.outbound.client import BodyLimit, OutboundClient
from adloom.runtime.outbound.failure import OutboundError

LIMIT: Final = BodyLimit(bytes_max=BYTES_MAX, is_cut_taken=True)


async def check_site(client: OutboundClient, verification: Verification) -> str | None:
    """Return why the site is not proven, or None if it is. A redirect to another host proves nothing."""

    def may_follow(url: str) -> str | None:
        return None if urlsplit(url).hostname == verification.domain else "another host proves nothing"

    try:
        response = await client.get(verification.url, limit=LIMIT, may_follow=may_follow)
    except OutboundError as error:
        return str(error)
    return find_mistake(response.status, response.body, verification.token)
