"""Lists over HTTP: what may be asked of one, and how a page of it is answered."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final, Generic, TypeVar

from pydantic import Field, field_validator
from pydantic.alias_generators import to_camel

from adloom.runtime.http.api.shapes import Answer, Body, Text255
from adloom.runtime.listing import PAGE_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, Listed, PageRequest

A = TypeVar("A", bound=Answer)

NEWEST_FIRST: Final = "-createdAt"


class ListQuery(Body):
    """The query of a list; a noun adds its filters and says by which columns it may be sorted."""

    SORTABLE: ClassVar[frozenset[str]] = frozenset({"created_at"})

    page: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 1
    page_size: Annotated[int, Field(ge=1, le=PAGE_SIZE_MAX)] = PAGE_SIZE_DEFAULT
    sort: Annotated[Text255, Field(description="A field; `-` before it for descending.")] = NEWEST_FIRST

    @field_validator("sort")
    @classmethod
    def _names_a_sortable_field(cls, sort: str) -> str:
        names = sorted(to_camel(column) for column in cls.SORTABLE)
        if sort.removeprefix("-") not in names:
            raise ValueError(f"must be one of {', '.join(names)}, with or without a - before it")
        return sort

    @property
    def page_request(self) -> PageRequest:
        """The requested part of the list, with the column's name in the database."""
        name = self.sort.removeprefix("-")
        return PageRequest(
            number=self.page,
            size=self.page_size,
            sort=next(column for column in self.SORTABLE if to_camel(column) == name),
            is_descending=self.sort.startswith("-"),
        )


class Page(Answer, Generic[A]):
    """One page of a list."""

    items: Sequence[A]
    total_count: int
    page: int
    page_size: int
    total_pages: int


def page_of(shape: type[A], listed: Listed[object], query: ListQuery) -> Page[A]:
    return Page[shape](
        items=[shape.model_validate(item) for item in listed.items],
        total_count=listed.total_count,
        page=query.page,
        page_size=query.page_size,
        total_pages=-(-listed.total_count // query.page_size),
    )
