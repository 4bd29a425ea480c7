"""Lists over HTTP: what may be asked of one, and how a page of it is answered."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Generic, TypeVar

from pydantic import Field, JsonValue, field_validator
from pydantic.alias_generators import to_camel

from adloom.runtime.http.api.shapes import Answer, Body, Text255
from adloom.runtime.listing import PAGE_MAX, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, Listed, PageRequest

A = TypeVar("A", bound=Answer)

NEWEST_FIRST: Final = "-createdAt"
SORT_DESCRIPTION: Final = "A field; `-` before it for descending."


def list_orders(names: Sequence[str]) -> list[JsonValue]:
    """Return every order by one of the names."""
    return [order for name in names for order in (name, f"-{name}")]


class ListQuery(Body):
    """The query of a list; a noun adds its filters and says by which columns it may be sorted."""

    SORTABLE: ClassVar[frozenset[str]] = frozenset({"created_at"})
    EXPRESSIONS: ClassVar[Mapping[str, str]] = {}  # SQL of what is no column, by name.

    page: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 1
    page_size: Annotated[int, Field(ge=1, le=PAGE_SIZE_MAX)] = PAGE_SIZE_DEFAULT
    sort: Annotated[Text255, Field(description=SORT_DESCRIPTION)] = NEWEST_FIRST

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: Any) -> None:  # noqa: ANN401 - as Pydantic declares it
        cls.describe_sort()

    @classmethod
    def describe_sort(cls) -> None:
        """Name the fields in the API's description; to be called when they have changed."""
        field = cls.model_fields["sort"]
        if field.annotation is str:
            field.json_schema_extra = {"enum": list_orders(sorted(to_camel(one) for one in cls.SORTABLE))}
            field.description = SORT_DESCRIPTION

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
        column = next(column for column in self.SORTABLE if to_camel(column) == name)
        return PageRequest(
            number=self.page,
            size=self.page_size,
            sort=column,
            expression=self.EXPRESSIONS.get(column, ""),
            is_descending=self.sort.startswith("-"),
        )


ListQuery.describe_sort()


class Page(Answer, Generic[A]):
    """One page of a list."""

    items: Sequence[A]
    total_count: int
    page: int
    page_size: int
    total_pages: int


def build_page(shape: type[A], listed: Listed[object], query: ListQuery) -> Page[A]:
    return Page[shape](
        items=[shape.model_validate(item) for item in listed.items],
        total_count=listed.total_count,
        page=query.page,
        page_size=query.page_size,
        total_pages=-(-listed.total_count // query.page_size),
    )
