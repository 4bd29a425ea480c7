"""What the request around a report tells of the reader, for what the report itself leaves out."""

from typing import Final

import msgspec


class RequestInfo(msgspec.Struct, frozen=True, gc=False):
    """The kind of device and the country, where they are known."""

    device_type: str | None = None
    country_code: str | None = None


UNKNOWN_REQUEST: Final = RequestInfo()
