"""Why a request to a host that a stranger named has failed."""

# pure

from enum import StrEnum


class FailureKind(StrEnum):
    """The name of a failure, as reports and metrics have it."""

    URL_REFUSED = "url_refused"
    ADDRESS_REFUSED = "address_refused"
    NOT_FOUND = "host_not_found"
    NOT_REACHED = "not_reached"
    CERTIFICATE = "certificate"
    TIMEOUT = "timeout"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    REDIRECT_REFUSED = "redirect_refused"
    HEADERS_TOO_LARGE = "headers_too_large"
    BODY_TOO_LARGE = "body_too_large"
    COMPRESSION = "compression"
    PROTOCOL = "protocol"


class OutboundError(Exception):
    """A request that got no answer we can use; the message is a sentence for the person who named the host."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def is_refused(self) -> bool:
        """Whether the request was never sent, because of where it would have gone."""
        return self.kind in {
            FailureKind.URL_REFUSED,
            FailureKind.ADDRESS_REFUSED,
            FailureKind.REDIRECT_REFUSED,
        }
