"""A publisher, and what can be wrong with one."""

from datetime import datetime

from adloom.core.errors import BadRequestError, NotFoundError
from adloom.core.ids import PublisherId
from adloom.resource.soft_delete import SoftDeletable
from adloom.runtime.http.api.shapes import Name


class PublisherNotFoundError(NotFoundError):
    """No such publisher, or the client is another one."""

    code = "PUBLISHER_NOT_FOUND"


class PublisherAlreadyDeletedError(BadRequestError):
    """The publisher is deleted, so it cannot be changed or deleted again."""

    code = "PUBLISHER_ALREADY_DELETED"


class PublisherNotDeletedError(BadRequestError):
    """Only what is deleted can be restored."""

    code = "PUBLISHER_NOT_DELETED"


class Publisher(SoftDeletable, frozen=True, kw_only=True):
    """An account that shows."""

    noun_name = "publisher"
    already_deleted = PublisherAlreadyDeletedError
    not_deleted = PublisherNotDeletedError

    id: PublisherId
    name: Name
    created_at: datetime
