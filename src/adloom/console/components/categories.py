"""What a page is about: its categories as chips, as bars, and the evidence for them."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from adloom.console.client import Json
from adloom.console.components.format import format_percent
from adloom.console.components.layout import meter
from adloom.taxonomy.iab import load_content
from adloom.taxonomy.tree import Taxonomy

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
        meter(confidence, choose_confidence_kind(confidence)), format_percent(confidence, places=0)
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
