"""Which items of the sample can be removed: all but those that other items use, and what those need."""

# pure

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from adloom.sample.manifest import Manifest

Item = Mapping[str, Any]
Lists = Mapping[str, Sequence[Item]]
Thing = tuple[str, str]  # A kind and an id.

# Fields by which items refer to others; deleting the target would change the item.
REFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "sites": {"publisherId": "publishers"},
    "placements": {"publisherId": "publishers", "siteId": "sites"},
    "banners": {"advertiserId": "advertisers", "brandId": "brands"},
    "campaigns": {"advertiserId": "advertisers"},
    "links": {"placementId": "placements"},
    "assignments": {"placementId": "placements", "bannerId": "banners"},
    "creatives": {"bannerId": "banners"},
}
# What belongs to a campaign, and to the sample if the campaign does.
OF_A_CAMPAIGN: Final = frozenset({"links", "assignments", "creatives"})
# In deletion order: items that refer to others come first. Rules and caps go with their parents.
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
    """An item that is not the sample's and uses one that is; without a kind, the API's words why it stays."""

    kind: str
    name: str


class Stays(msgspec.Struct, frozen=True):
    """An item of the sample that stays, and what uses it."""

    kind: str
    key: str
    name: str
    used_by: UsedBy


class Removal(msgspec.Struct, frozen=True):
    """The plan of a removal."""

    goes: list[tuple[str, str, str]]  # Kind, the sample's key, and id.
    stays: list[Stays]


def plan_removal(manifest: Manifest, lists: Lists, used_abroad: Mapping[str, UsedBy]) -> Removal:
    """Plan from an export of the catalog; `used_abroad` are advertisers with ad accounts that are not the sample's."""
    used = {("advertisers", made_id): user for made_id, user in used_abroad.items()}
    used |= _find_used_by_others(manifest, lists)
    named_by: dict[Thing, list[Thing]] = {}
    names: dict[Thing, str] = {}
    for kind, items in lists.items():
        if kind not in OF_A_CAMPAIGN:
            for item in items:
                thing = kind, str(item["id"])
                names[thing] = _name(kind, item, lists)
                named_by[thing] = list(_list_named(kind, item))
    _spread(used, named_by)
    removal = Removal([], [])
    for kind in GOING:
        for key, made_id in manifest.get_ids(kind).items():
            user = used.get((kind, made_id))
            if user is None:
                removal.goes.append((kind, key, made_id))
            else:
                removal.stays.append(Stays(kind, key, names.get((kind, made_id), key), user))
    return removal


def _find_used_by_others(manifest: Manifest, lists: Lists) -> dict[Thing, UsedBy]:
    """Return the sample's items that other items refer to, and by which."""
    ours = {(kind, made_id) for kind, ids in manifest.things.items() for made_id in ids.values()}
    used: dict[Thing, UsedBy] = {}
    for kind, items in lists.items():
        for item in items:
            if not _is_ours(kind, item, ours):
                used |= dict.fromkeys(_list_named(kind, item), UsedBy(kind, _name(kind, item, lists)))
    return used


def _spread(used: dict[Thing, UsedBy], named_by: Mapping[Thing, Sequence[Thing]]) -> None:
    """Keep also what kept items refer to."""
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


def _list_named(kind: str, item: Item) -> Iterator[Thing]:
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
