"""What the sample has on ad platforms elsewhere: accounts of a platform that only pretends, and one that is our own."""

from typing import Final

import msgspec


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    """A thing of stats sync: its kind, its own name, what it hangs on by kind and name, and its fields."""

    kind: str
    key: str
    name: str
    hangs_on: dict[str, tuple[str, str]] = {}
    fields: dict[str, object] = {}
    # Where an account is our own: the kind and the name of what it is here, by the field that says so.
    is_here: dict[str, tuple[str, str]] = {}


ACCOUNTS: Final = "adAccounts"
PAGES: Final = "sellPages"
CAMPAIGNS: Final = "adCampaigns"
SETS: Final = "adSets"
ADS: Final = "ads"
# What hangs on others comes after them, and is deleted before them.
PATHS: Final = {
    ACCOUNTS: "/api/ads-manager/accounts",
    PAGES: "/api/ads-manager/sellpages",
    CAMPAIGNS: "/api/ads-manager/campaigns",
    SETS: "/api/ads-manager/adsets",
    ADS: "/api/ads-manager/ads",
}


def _campaign(key: str, name: str, account: str, page: str, budget: float) -> Outside:
    return Outside(
        kind=CAMPAIGNS,
        key=key,
        name=name,
        hangs_on={"adAccountId": (ACCOUNTS, account), "sellpageId": (PAGES, page)},
        fields={"budget": budget},
    )


def _set(key: str, name: str, campaign: str) -> Outside:
    return Outside(kind=SETS, key=key, name=name, hangs_on={"campaignId": (CAMPAIGNS, campaign)})


def _ad(key: str, name: str, adset: str) -> Outside:
    return Outside(kind=ADS, key=key, name=name, hangs_on={"adsetId": (SETS, adset)})


OUTSIDE: Final = (
    Outside(
        kind=ACCOUNTS,
        key="pretended",
        name="Meadow & Oak elsewhere (pretended)",
        fields={"platform": "mock", "externalId": "act_sample", "currency": "GBP"},
    ),
    Outside(
        kind=ACCOUNTS,
        key="own",
        name="Meadow & Oak, here",
        fields={"platform": "adloom", "currency": "GBP"},
    ),
    Outside(kind=PAGES, key="autumn", name="The autumn shelf"),
    Outside(kind=PAGES, key="tea", name="Table and tea"),
    _campaign("warm", "Warm evenings", "pretended", "autumn", 60),
    _campaign("table", "Lay the table", "pretended", "tea", 35),
    msgspec.structs.replace(
        _campaign("here", "Autumn, in The Hedgerow", "own", "autumn", 90),
        is_here={"externalCampaignId": ("campaigns", "autumn")},
    ),
    _set("wool", "People who knit", "warm"),
    _set("fire", "People with a fireplace", "warm"),
    _set("cups", "People who collect cups", "table"),
    _ad("blanket", "The blanket, on a chair", "wool"),
    _ad("scarf", "The blanket, on a bench", "wool"),
    _ad("candle", "Forty hours", "fire"),
    _ad("lantern", "The lantern at the door", "fire"),
    _ad("mug", "Two hands", "cups"),
    _ad("teapot", "It smiles", "cups"),
)
