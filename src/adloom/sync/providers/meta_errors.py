"""What Meta's errors mean for us; pure."""

from http import HTTPStatus
from typing import Final

import msgspec

from adloom.sync.providers.meta_usage import MetaUsage
from adloom.sync.providers.protocol import (
    CredentialsExpiredError,
    ProviderError,
    ProviderRefusedError,
    ProviderUnavailableError,
    ThrottledError,
)

# 190: the token has expired, or was revoked; 102: its session is over.
EXPIRED_CODES: Final = frozenset({102, 190})
# 10 and 200 to 299: the token lacks a permission that it needs, so it has to be made anew too.
PERMISSION_CODES: Final = frozenset({10, *range(200, 300)})
# 4: the app, 17 and 32: the user, 613: the account; 80000 and on: the business use cases.
THROTTLED_CODES: Final = frozenset({4, 17, 32, 613, *range(80000, 80015)})
# 1: unknown, 2: the service; both pass.
TRANSIENT_CODES: Final = frozenset({1, 2})
TOO_MUCH_DATA: Final = "reduce the amount of data"


class MetaFault(msgspec.Struct, frozen=True):
    """What an answer says that is an error."""

    code: int = 0
    error_subcode: int = 0
    message: str = ""
    is_transient: bool = False


class MetaErrorBody(msgspec.Struct, frozen=True):
    """An answer that is an error."""

    error: MetaFault


class TooMuchDataError(ProviderUnavailableError):
    """A page is too large for Meta; a smaller one may do."""


def parse_error(status: int, body: bytes, usage: MetaUsage) -> ProviderError:
    """Tell what an answer means that is no page. Meta's own words are left out: they may repeat what we sent."""
    try:
        fault = msgspec.json.decode(body, type=MetaErrorBody).error
    except msgspec.MsgspecError:
        fault = MetaFault()
    named = f"(code {fault.code}, subcode {fault.error_subcode}, HTTP {status})"
    if fault.code in EXPIRED_CODES or (not fault.code and status == HTTPStatus.UNAUTHORIZED):
        return CredentialsExpiredError(
            f"Meta no longer takes the access token {named}. Connect the account again."
        )
    if fault.code in PERMISSION_CODES:
        return CredentialsExpiredError(
            f"The access token may not read the statistics {named}. Connect the account with ads_read."
        )
    if fault.code in THROTTLED_CODES or status == HTTPStatus.TOO_MANY_REQUESTS:
        return ThrottledError(f"Meta asks for patience {named}.", retry_after=usage.retry_after)
    if TOO_MUCH_DATA in fault.message.lower():
        return TooMuchDataError(f"Meta finds a page too large {named}.")
    if fault.code in TRANSIENT_CODES or fault.is_transient or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ProviderUnavailableError(f"Meta does not answer for now {named}.")
    return ProviderRefusedError(
        f"Meta refuses the question {named}. Check the account's externalId and its external ids."
    )
