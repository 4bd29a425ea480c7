"""The taxonomies over HTTP: whoever is logged in may look up what categories there are."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from fastapi import Query
from pydantic import Field

from adloom.core.errors import make_field_error
from adloom.resource.api import make_catalog_router
from adloom.runtime.http.api.dependencies import CurrentCaller
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Text100, Text255
from adloom.runtime.listing import Listed
from adloom.taxonomy.iab import ATTRIBUTION, load_content, load_content_of_products, load_products
from adloom.taxonomy.tree import Taxonomy, TaxonomyNode


class TaxonomyQuery(ListQuery):
    """How a taxonomy is searched and paged. The order is that of the published table; of a search, the best first."""

    SORTABLE: ClassVar = frozenset({"position"})

    sort: Literal["position"] = "position"  # pyright: ignore[reportIncompatibleVariableOverride] - there is one order
    search: Annotated[Text255 | None, Field(description="Words of a name, or an id.")] = None
    parent_id: Annotated[Text100 | None, Field(description="Only the nodes directly below this one.")] = None
    tier: Annotated[int | None, Field(ge=1, le=4, description="1 for the roots.")] = None


class CategoryAnswer(Answer):
    """A node of a taxonomy."""

    id: str
    name: str
    path: Annotated[Sequence[str], Field(description="The names from the root down to its own.")]
    tier: Annotated[int, Field(description="How deep it is: 1 for a root.")]
    parent_id: str | None


class ProductAnswer(CategoryAnswer):
    """A node of the product taxonomy."""

    content_id: Annotated[
        str | None, Field(description="The content that goes with it, where IAB's tables lead to one.")
    ]


router = make_catalog_router("/admin/taxonomy", tag="taxonomy")


@router.get("/content", description=f"List what pages can be about. {ATTRIBUTION}")
async def list_content(
    query: Annotated[TaxonomyQuery, Query()], _caller: CurrentCaller
) -> Page[CategoryAnswer]:
    return build_page(CategoryAnswer, _find(load_content(), query), query)


@router.get("/products", description=f"List what ads can be for. {ATTRIBUTION}")
async def list_products(
    query: Annotated[TaxonomyQuery, Query()], _caller: CurrentCaller
) -> Page[ProductAnswer]:
    listed = _find(load_products(), query)
    answers = [
        ProductAnswer(
            **CategoryAnswer.model_validate(node).model_dump(by_alias=False),
            content_id=load_content_of_products().get(node.id),
        )
        for node in listed.items
    ]
    return build_page(ProductAnswer, Listed(items=answers, total_count=listed.total_count), query)


def _find(taxonomy: Taxonomy, query: TaxonomyQuery) -> Listed[TaxonomyNode]:
    if query.parent_id is not None and query.parent_id not in taxonomy:
        raise make_field_error("parentId", "names no node of this taxonomy")
    nodes = taxonomy.search(query.search) if query.search else list(taxonomy)
    if query.parent_id is not None:
        nodes = [node for node in nodes if node.parent_id == query.parent_id]
    if query.tier is not None:
        nodes = [node for node in nodes if node.tier == query.tier]
    start = (query.page - 1) * query.page_size
    return Listed(items=nodes[start : start + query.page_size], total_count=len(nodes))
