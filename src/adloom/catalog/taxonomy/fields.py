"""Fields that name nodes of the taxonomies."""

from collections.abc import Callable
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from adloom.runtime.http.api.shapes import Text
from adloom.taxonomy.iab import load_content, load_products
from adloom.taxonomy.tree import Taxonomy

ID_LENGTH_MAX: Final = 20


def _make_check(taxonomy: Callable[[], Taxonomy], path: str) -> Callable[[str], str]:
    def check(node_id: str) -> str:
        if node_id not in taxonomy():
            raise ValueError(f"names no category: GET {path} lists them")
        return node_id

    return check


ContentCategory = Annotated[
    Text,
    Field(max_length=ID_LENGTH_MAX),
    AfterValidator(_make_check(load_content, "/admin/taxonomy/content")),
]
ProductCategory = Annotated[
    Text,
    Field(max_length=ID_LENGTH_MAX),
    AfterValidator(_make_check(load_products, "/admin/taxonomy/products")),
]
