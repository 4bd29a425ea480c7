"""The notice that pages of a site changed, for processes that keep pages in memory."""

from collections.abc import Iterable
from typing import Final

import msgspec
import structlog

from adloom.core.ids import SiteId
from adloom.runtime.valkey import VALKEY_AWAY, Valkey, retry_if_disconnected

PAGE_NOTICES: Final = "adloom:pages:notices"

log: structlog.stdlib.BoundLogger = structlog.get_logger()


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


async def publish_written(valkey: Valkey, notices: Iterable[PageNotice]) -> None:
    """Publish what was committed, also where Valkey is away: then readers find out by themselves."""
    for notice in notices:
        try:
            await publish_page_notice(valkey, notice)
        except VALKEY_AWAY as error:
            log.warning("page_notice_not_sent", site_id=str(notice.site_id), error=repr(error))
            return


def read_page_notice(message: bytes) -> PageNotice:
    return _decode(message)
