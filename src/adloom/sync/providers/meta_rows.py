"""Rows of Meta's Insights API, read into ours; pure."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec

from adloom.sync.figures import ZERO, Figures, compute_ratios, round_money
from adloom.sync.providers.protocol import Entity, ProviderUnavailableError, StatRow
from adloom.sync.words import Level

# What Meta calls a level, and the field that names an entity of it.
LEVEL_NAMES: Final = {Level.CAMPAIGN: "campaign", Level.ADSET: "adset", Level.AD: "ad"}
ID_FIELDS: Final = {Level.CAMPAIGN: "campaign_id", Level.ADSET: "adset_id", Level.AD: "ad_id"}
FIGURE_FIELDS: Final = (
    *("spend", "impressions", "inline_link_clicks", "actions", "action_values"),
    *("account_currency", "date_start", "date_stop"),
)
# The same action stands in the list under several names, each a sum of narrower ones: the widest that is there
# counts, and they are never added.
CONTENT_VIEWS: Final = ("omni_view_content", "view_content", "offsite_conversion.fb_pixel_view_content")
ADD_TO_CART: Final = ("omni_add_to_cart", "add_to_cart", "offsite_conversion.fb_pixel_add_to_cart")
CHECKOUTS: Final = (
    *("omni_initiated_checkout", "initiate_checkout"),
    "offsite_conversion.fb_pixel_initiate_checkout",
)
PURCHASES: Final = ("omni_purchase", "purchase", "offsite_conversion.fb_pixel_purchase")


class MetaAction(msgspec.Struct, frozen=True):
    """How often somebody did something, or what it was worth."""

    action_type: str
    value: str = "0"


class Insight(msgspec.Struct, frozen=True, kw_only=True):
    """A row: an entity and a day. Figures are texts; what is 0 may be left out."""

    date_start: date
    date_stop: date
    campaign_id: str | None = None
    adset_id: str | None = None
    ad_id: str | None = None
    account_currency: str | None = None
    spend: str = "0"
    impressions: str = "0"
    inline_link_clicks: str = "0"
    actions: Sequence[MetaAction] = ()
    action_values: Sequence[MetaAction] = ()


class MetaCursors(msgspec.Struct, frozen=True):
    """Where a page ends."""

    after: str | None = None


class MetaPaging(msgspec.Struct, frozen=True):
    """How to go on; without `next` there is nothing more. That address has the token in it, so it is never used."""

    cursors: MetaCursors | None = None
    next: str | None = None


class InsightPage(msgspec.Struct, frozen=True):
    """A page of rows."""

    data: Sequence[Insight]
    paging: MetaPaging | None = None

    @property
    def after(self) -> str | None:
        """The cursor of the next page; None where this is the last."""
        if self.paging is None or self.paging.next is None or self.paging.cursors is None:
            return None
        return self.paging.cursors.after


def list_fields(level: Level) -> str:
    """Name the fields to ask for."""
    return ",".join((ID_FIELDS[level], *FIGURE_FIELDS))


def parse_rows(page: Sequence[Insight], level: Level, entities: Mapping[str, Entity]) -> list[StatRow]:
    """Read rows of entities that we know; Meta also tells of those that nobody has entered here."""
    rows: list[StatRow] = []
    for insight in page:
        external_id = find_external_id(insight, level)
        entity = entities.get(external_id)
        if entity is None:
            continue
        figures = parse_figures(insight)
        rows.append(
            StatRow(
                entity_id=entity.id,
                external_entity_id=external_id,
                date_start=insight.date_start,
                date_stop=insight.date_stop,
                figures=figures,
                ratios=compute_ratios(figures),
            )
        )
    return rows


def find_external_id(insight: Insight, level: Level) -> str:
    """Tell which entity a row is about."""
    external_id: str | None = getattr(insight, ID_FIELDS[level])
    if external_id is None:
        raise ProviderUnavailableError(f"Meta has left out {ID_FIELDS[level]} of a row.")
    return external_id


def parse_figures(insight: Insight) -> Figures:
    """Read the figures of a row."""
    return Figures(
        spend=round_money(parse_number(insight.spend)),
        impressions=int(parse_number(insight.impressions)),
        link_clicks=int(parse_number(insight.inline_link_clicks)),
        content_views=int(_read_widest(insight.actions, CONTENT_VIEWS)),
        add_to_cart=int(_read_widest(insight.actions, ADD_TO_CART)),
        checkout_initiated=int(_read_widest(insight.actions, CHECKOUTS)),
        purchases=int(_read_widest(insight.actions, PURCHASES)),
        purchase_value=round_money(_read_widest(insight.action_values, PURCHASES)),
    )


def parse_number(text: str) -> Decimal:
    """Read a figure; one that is none, or below zero, is Meta's mistake and not a figure of 0."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(-1)
    if not value.is_finite() or value < 0:
        raise ProviderUnavailableError(f"Meta has sent {text[:40]!r} as a figure.")
    return value


def _read_widest(actions: Sequence[MetaAction], names: Sequence[str]) -> Decimal:
    values = {action.action_type: action.value for action in actions}
    return next((parse_number(values[name]) for name in names if name in values), ZERO)
