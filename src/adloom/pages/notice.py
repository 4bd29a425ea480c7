"""The notice that pages of a site changed, for whoever holds pages in memory."""

from typing import Final

import msgspec

from adloom.core.ids import SiteId
from adloom.runtime.valkey import Valkey, retry_if_disconnected

PAGE_NOTICES: Final = "adloom:pages:notices"


class PageNotice(msgspec.Struct, frozen=True):
    """A site whose pages changed, and the highest version among them."""

    site_id: SiteId
    version: int


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(PageNotice).decode


async def publish_page_notice(valkey: Valkey, notice: PageNotice) -> None:
    """Publish after the commit; one that is lost is made good by readers that look at versions from time to time."""
    message = _encode(notice)
    await retry_if_disconnected(lambda: valkey.publish(PAGE_NOTICES, message))


def read_page_notice(message: bytes) -> PageNotice:
    return _decode(message)
