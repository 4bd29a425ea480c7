"""What a page is about: its categories as chips, as bars, the evidence for them, and a field that chooses some."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import format_percent
from adloom.console.components.forms import checks
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import build_meter
from adloom.taxonomy.iab import load_content
from adloom.taxonomy.tree import Taxonomy, TaxonomyNode

STEP: Final = " › "
SURE: Final = 0.6
LIKELY: Final = 0.35


def describe_node(taxonomy: Taxonomy, node_id: str) -> str:
    """Return the names from the root down to the node; an unknown one is named by its id."""
    return STEP.join(taxonomy.find_path(node_id)) or node_id


def describe_category(category_id: str) -> str:
    return describe_node(load_content(), category_id)


def choose_confidence_kind(confidence: float) -> str:
    """Return the colour of a confidence."""
    return "good" if confidence >= SURE else "warn" if confidence < LIKELY else ""


def build_category_chips(categories: Sequence[Json]) -> Markup:
    """Show categories in a row of a table; the bar in a chip is the confidence."""
    chips = Markup("").join(_build_chip(one) for one in categories)
    return Markup('<span class="al-chips">{}</span>').format(chips)


def _build_chip(category: Json) -> Markup:
    confidence = category["confidence"]
    return Markup(
        '<span class="al-chip {}" title="{}, {}"><span class="cut">{}</span><b class="num">{}</b>'
        '<i style="width: {:.0f}%" aria-hidden="true"></i></span>'
    ).format(
        choose_confidence_kind(confidence),
        describe_category(category["id"]),
        format_percent(confidence, places=0),
        category["name"],
        format_percent(confidence, places=0),
        confidence * 100,
    )


def build_confidence_bar(confidence: float) -> Markup:
    return Markup('<span class="al-confidence">{}<b class="num">{}</b></span>').format(
        build_meter(confidence, choose_confidence_kind(confidence)), format_percent(confidence, places=0)
    )


def build_evidence_list(evidence: Sequence[Json]) -> Markup:
    """Show the phrases that spoke for a category, and the part of the page that each resembles."""
    rows = Markup("").join(
        Markup(
            '<li><div class="row-of tight"><span class="strong">“{}”</span>'
            '<span class="quiet small num">similarity {}</span></div><blockquote>{}</blockquote></li>'
        ).format(one["phrase"], format_percent(one["similarity"], places=0), one["excerpt"])
        for one in evidence
    )
    return Markup('<ul class="al-evidence">{}</ul>').format(rows)


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

    options = offer("", form.get_initial(name))
    if is_single:
        field = form.add_choice(name, label, options, is_clearable=True, is_searchable=True, hint=hint)
    else:
        field = form.add_choices(name, label, options, hint=hint, check=check)

    def search(event: Any) -> None:  # noqa: ANN401 - NiceGUI's own
        text = event.args if isinstance(event.args, str) else ""
        field.set_options(offer(text, field.value))

    field.props(f"input-debounce={SEARCH_WAIT_MILLISECONDS}").on("input-value", search)
    return field
