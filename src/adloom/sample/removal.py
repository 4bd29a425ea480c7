"""Which things of the sample can go: all but those that something else uses, and what these need themselves."""

# pure

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from adloom.sample.manifest import Manifest

Item = Mapping[str, Any]
Lists = Mapping[str, Sequence[Item]]
Thing = tuple[str, str]  # A kind and an id.

# By which fields things name others; who deletes these would change those.
REFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "sites": {"publisherId": "publishers"},
    "placements": {"publisherId": "publishers", "siteId": "sites"},
    "banners": {"advertiserId": "advertisers", "brandId": "brands"},
    "campaigns": {"advertiserId": "advertisers"},
    "links": {"placementId": "placements"},
    "assignments": {"placementId": "placements", "bannerId": "banners"},
}
# What belongs to a campaign, and is the sample's if the campaign is.
OF_A_CAMPAIGN: Final = frozenset({"links", "assignments"})
# In the order in which they go: who names others before them. Rules and caps go with what they hang on.
GOING: Final[Mapping[str, str]] = {
    "campaigns": "/admin/campaigns",
    "frequencyCaps": "/api/v1/admin/frequency/caps",
    "placements": "/admin/placements",
    "banners": "/admin/banners",
    "sites": "/admin/sites",
    "brands": "/admin/references/brand",
    "advertisers": "/admin/advertisers",
    "publishers": "/admin/publishers",
}


class UsedBy(msgspec.Struct, frozen=True):
    """Something that is not the sample's and uses something that is."""

    kind: str
    name: str


class Stays(msgspec.Struct, frozen=True):
    """A thing of the sample that stays, and who uses it."""

    kind: str
    key: str
    name: str
    used_by: UsedBy


class Removal(msgspec.Struct, frozen=True):
    """What is to be done."""

    goes: list[tuple[str, str, str]]  # A kind, the sample's name of the thing, and its id.
    stays: list[Stays]


def plan_removal(manifest: Manifest, lists: Lists, used_abroad: Mapping[str, UsedBy]) -> Removal:
    """Plan by what the catalog says; `used_abroad` has advertisers whose ad accounts are somebody else's."""
    used = {("advertisers", made_id): user for made_id, user in used_abroad.items()}
    used |= _used_by_others(manifest, lists)
    named_by: dict[Thing, list[Thing]] = {}
    names: dict[Thing, str] = {}
    for kind, items in lists.items():
        if kind not in OF_A_CAMPAIGN:
            for item in items:
                thing = kind, str(item["id"])
                names[thing] = _name(kind, item, lists)
                named_by[thing] = list(_named(kind, item))
    _spread(used, named_by)
    removal = Removal([], [])
    for kind in GOING:
        for key, made_id in manifest.ids_of(kind).items():
            user = used.get((kind, made_id))
            if user is None:
                removal.goes.append((kind, key, made_id))
            else:
                removal.stays.append(Stays(kind, key, names.get((kind, made_id), key), user))
    return removal


def _used_by_others(manifest: Manifest, lists: Lists) -> dict[Thing, UsedBy]:
    """Tell what is named by something that is not the sample's, and by what."""
    ours = {(kind, made_id) for kind, ids in manifest.things.items() for made_id in ids.values()}
    used: dict[Thing, UsedBy] = {}
    for kind, items in lists.items():
        for item in items:
            if not _is_ours(kind, item, ours):
                used |= dict.fromkeys(_named(kind, item), UsedBy(kind, _name(kind, item, lists)))
    return used


def _spread(used: dict[Thing, UsedBy], named_by: Mapping[Thing, Sequence[Thing]]) -> None:
    """Keep also what is named by what is kept."""
    waiting = list(used)
    while waiting:
        thing = waiting.pop()
        for named in named_by.get(thing, ()):
            if named not in used:
                used[named] = used[thing]
                waiting.append(named)


def _is_ours(kind: str, item: Item, ours: set[Thing]) -> bool:
    if kind in OF_A_CAMPAIGN:
        return ("campaigns", str(item["campaignId"])) in ours
    return (kind, str(item["id"])) in ours


def _named(kind: str, item: Item) -> Iterator[Thing]:
    for field, other in REFERENCES.get(kind, {}).items():
        if item.get(field) is not None:
            yield other, str(item[field])


def _name(kind: str, item: Item, lists: Lists) -> str:
    if kind in OF_A_CAMPAIGN:
        campaign_id = item["campaignId"]
        return next((str(it["name"]) for it in lists.get("campaigns", ()) if it["id"] == campaign_id), kind)
    for field in ("name", "title", "slug", "label"):
        if item.get(field):
            return str(item[field])
    return str(item["id"])
