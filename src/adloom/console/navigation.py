"""Which pages there are, and whose they are; a role sees the pages whose routes of the API it may read."""

from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from adloom.core.actor import Role

EVERYBODY: Final = frozenset(Role)
HOUSE: Final = frozenset({Role.ADMIN, Role.VIEWER})
BUYERS: Final = HOUSE | {Role.ADVERTISER}
SELLERS: Final = HOUSE | {Role.PUBLISHER}
ADMINS: Final = frozenset({Role.ADMIN})


class Section(msgspec.Struct, frozen=True):
    """An entry of the navigation."""

    path: str
    label: str
    icon: str
    roles: AbstractSet[Role]
    group: str = ""


SECTIONS: Final = (
    Section("/console", "Overview", "insights", EVERYBODY),
    Section("/console/campaigns", "Campaigns", "campaign", BUYERS, "Catalog"),
    Section("/console/banners", "Banners", "image", BUYERS, "Catalog"),
    Section("/console/placements", "Placements", "view_quilt", SELLERS, "Catalog"),
    Section("/console/sites", "Sites", "language", SELLERS, "Catalog"),
    Section("/console/advertisers", "Advertisers", "storefront", BUYERS, "Catalog"),
    Section("/console/publishers", "Publishers", "groups", SELLERS, "Catalog"),
    Section("/console/first-campaign", "My first campaign", "auto_awesome", ADMINS, "Catalog"),
    Section("/console/why", "Why?", "help_outline", EVERYBODY, "Insight"),
    Section("/console/auctions", "Auctions", "gavel", BUYERS, "Insight"),
    Section("/console/budgets", "Budgets", "account_balance_wallet", BUYERS, "Insight"),
    Section("/console/reports", "Reports", "bar_chart", EVERYBODY, "Insight"),
    Section("/console/reports/ads", "Stats sync", "sync", BUYERS, "Insight"),
    Section("/console/jobs", "Jobs", "work_history", BUYERS, "Operation"),
    Section("/console/system", "System", "dns", ADMINS, "Operation"),
)


def sections_for(role: Role, *, registered: AbstractSet[str]) -> list[Section]:
    """Tell the entries that somebody of a role can use."""
    return [section for section in SECTIONS if role in section.roles and section.path in registered]
