"""Which pages there are, and whose they are; a role sees the pages whose routes of the API it may read."""

from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from adloom.console.words import shell as words
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
    Section("/console", words.OVERVIEW, "insights", EVERYBODY),
    Section("/console/campaigns", words.CAMPAIGNS, "campaign", BUYERS, words.GROUP_CATALOG),
    Section("/console/banners", words.BANNERS, "image", BUYERS, words.GROUP_CATALOG),
    Section("/console/placements", words.PLACEMENTS, "view_quilt", SELLERS, words.GROUP_CATALOG),
    Section("/console/sites", words.SITES, "language", SELLERS, words.GROUP_CATALOG),
    Section("/console/advertisers", words.ADVERTISERS, "storefront", BUYERS, words.GROUP_CATALOG),
    Section("/console/publishers", words.PUBLISHERS, "groups", SELLERS, words.GROUP_CATALOG),
    Section("/console/first-campaign", words.FIRST_CAMPAIGN, "auto_awesome", ADMINS, words.GROUP_CATALOG),
    Section("/console/why", words.WHY, "help_outline", EVERYBODY, words.GROUP_INSIGHT),
    Section("/console/auctions", words.AUCTIONS, "gavel", BUYERS, words.GROUP_INSIGHT),
    Section("/console/budgets", words.BUDGETS, "account_balance_wallet", BUYERS, words.GROUP_INSIGHT),
    Section("/console/reports", words.REPORTS, "bar_chart", EVERYBODY, words.GROUP_INSIGHT),
    Section("/console/reports/ads", words.STATS_SYNC, "sync", BUYERS, words.GROUP_INSIGHT),
    Section("/console/jobs", words.JOBS, "work_history", BUYERS, words.GROUP_OPERATION),
    Section("/console/system", words.SYSTEM, "dns", ADMINS, words.GROUP_OPERATION),
)


def sections_for(role: Role, *, registered: AbstractSet[str]) -> list[Section]:
    """Tell the entries that somebody of a role can use."""
    return [section for section in SECTIONS if role in section.roles and section.path in registered]
