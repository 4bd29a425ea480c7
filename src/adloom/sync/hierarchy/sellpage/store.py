"""SQL of sell pages."""

from adloom.runtime.listing import Filters
from adloom.sync.hierarchy.model import Sellpage, SellpageNotFoundError
from adloom.sync.hierarchy.store import Below, PresentTable

SORTABLE = frozenset({"created_at", "updated_at", "name"})

sellpages = PresentTable(
    Sellpage,
    table="sync.sellpages",
    noun="sellpage",
    not_found=SellpageNotFoundError,
    below=Below(table="sync.campaigns", column="sellpage_id", words="campaigns"),
)


def matching(*, search: str | None) -> Filters:
    """Filter a list of sell pages."""
    filters = Filters()
    filters.add_search(("it.name", "it.url"), search)
    return filters
