"""A field for nodes of a taxonomy: found by words of their names, shown with their paths."""

from collections.abc import Sequence
from typing import Any, Final

from nicegui import ui

from adloom.console.components.categories import describe_node
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import Form
from adloom.taxonomy.tree import Taxonomy

FOUND_MAX: Final = 50
SEARCH_WAIT_MILLISECONDS: Final = 150


def category_field(  # noqa: PLR0913 - a field, and what fields differ in
    form: Form,
    name: str,
    label: str,
    taxonomy: Taxonomy,
    *,
    hint: str = "",
    check: checks.Check | None = None,
) -> ui.select:
    """Add the field. It offers the roots first, and then what is found: all nodes would be 50 KB a page."""
    chosen: Sequence[str] = form.initial(name) or ()
    roots = {node.id: node.name for node in taxonomy.children(None)}
    options = {**{node_id: describe_node(taxonomy, node_id) for node_id in chosen}, **roots}
    field = form.choices(name, label, options, hint=hint, check=check)

    def search(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        text = event.args if isinstance(event.args, str) else ""
        found = taxonomy.search(text)[:FOUND_MAX] if text.strip() else taxonomy.children(None)
        offered = [*(field.value or ()), *(node.id for node in found)]
        field.set_options({node_id: describe_node(taxonomy, node_id) for node_id in offered})

    field.props(f"input-debounce={SEARCH_WAIT_MILLISECONDS}").on("input-value", search)
    return field
