"""A field for nodes of a taxonomy: found by words of their names, shown with their paths and what is known of them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from nicegui import ui

from adloom.console.components.categories import describe_node
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import Form
from adloom.taxonomy.tree import Taxonomy, TaxonomyNode

FOUND_MAX: Final = 50
SEARCH_WAIT_MILLISECONDS: Final = 150


def add_category_field(  # noqa: PLR0913 - a field, and what fields differ in
    form: Form,
    name: str,
    label: str,
    taxonomy: Taxonomy,
    *,
    hint: str = "",
    check: checks.Check | None = None,
    is_single: bool = False,
    notes: Mapping[str, str] | None = None,
    rank: Callable[[TaxonomyNode], float] | None = None,
) -> ui.select:
    """Add the field. It offers the roots first, and then what is found: all nodes would be 50 KB a page.

    `notes` are added to nodes that are offered; the highest `rank` comes first.
    """

    def list_chosen(value: Any) -> list[str]:  # noqa: ANN401 - one or several
        return [one for one in ([value] if is_single else value or ()) if one]

    def offer(text: str, value: Any) -> dict[str, str]:  # noqa: ANN401 - one or several
        found = taxonomy.search(text)[:FOUND_MAX] if text.strip() else taxonomy.list_children(None)
        if rank is not None:
            found = sorted(found, key=rank, reverse=True)
        # What is chosen is shown in the field, where a note would be in the way.
        chosen = {one: describe_node(taxonomy, one) for one in list_chosen(value)}
        return chosen | {node.id: _describe(node.id) for node in found if node.id not in chosen}

    def _describe(node_id: str) -> str:
        path = describe_node(taxonomy, node_id)
        return f"{path} · {notes[node_id]}" if notes and node_id in notes else path

    options = offer("", form.initial(name))
    if is_single:
        field = form.choice(name, label, options, is_clearable=True, is_searchable=True, hint=hint)
    else:
        field = form.choices(name, label, options, hint=hint, check=check)

    def search(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        text = event.args if isinstance(event.args, str) else ""
        field.set_options(offer(text, field.value))

    field.props(f"input-debounce={SEARCH_WAIT_MILLISECONDS}").on("input-value", search)
    return field
