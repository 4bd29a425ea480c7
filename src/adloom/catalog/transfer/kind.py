"""The kinds of things that a document has, each with the shapes and the rules that the API has for it.

What a kind's items say is read off the API's own shapes, so that a field that is added there can be
imported and exported from then on.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import msgspec

import adloom.catalog.advertiser.api as advertiser
import adloom.catalog.assignment.api as assignment
import adloom.catalog.banner.api as banner
import adloom.catalog.campaign.api as campaign
import adloom.catalog.frequency.api as frequency
import adloom.catalog.placement.api as placement
import adloom.catalog.publisher.api as publisher
import adloom.catalog.targeting_rule.api as targeting_rule
from adloom.catalog.site.resource import sites
from adloom.catalog.transfer.table import Table
from adloom.core.actor import Role
from adloom.resource.changes import IndexedNoun
from adloom.runtime.http.api.shapes import Answer, Body, Name, Patch

Finish = Callable[[Any, Any, datetime], Any]


class RecordBody(Body):
    """What a record that banners name can be told; its id is the shop's own."""

    label: Name


class RecordPatch(Patch, RecordBody):
    """Changes of a record."""


class RecordAnswer(Answer):
    """A record."""

    id: Any
    label: str


class ReferenceRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that banners name, as its table has it."""

    id: Any
    label: str
    created_at: datetime


class Kind(msgspec.Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """One list of the document.

    `owner` is the role whose accounts have such things; what only admins keep has none. `references`
    are the fields that name things of other kinds; `natural` is a field by which one is found without its
    id; `finished` is the rule that a thing has to pass, new or changed. What does not say itself whose it is
    is its owner's whom it hangs on, by the field `hangs_on`.
    """

    name: str
    singular: str
    noun: str
    body: type[Body]
    patch: type[Patch]
    answer: type[Answer]
    table: Table
    owner: Role | None = None
    references: Mapping[str, str] = {}
    natural: str | None = None
    hangs_on: str = "campaign_id"
    finished: Finish = lambda _said, thing, _now: thing

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """How clients call each field that a document may have, in the order of the API's answers."""
        told = {*self.body.model_fields, *self.table.identity, *self.references, *self.beside}
        names = {name: field.alias or name for name, field in self.answer.model_fields.items()}
        return {name: alias for name, alias in names.items() if name in told}

    @cached_property
    def beside(self) -> frozenset[str]:
        """Fields that the API changes on routes of their own, and a document like any other."""
        return frozenset({"status"} & {*self.table.fields} - {*self.body.model_fields})

    @cached_property
    def owner_field(self) -> str | None:
        """The field that says whose a thing is, where it has one itself."""
        field = f"{self.owner}_id"
        return field if field in self.table.fields else None


def _records(name: str, singular: str, noun: str, table: str, identity_type: str = "integer") -> Kind:
    return Kind(
        name=name,
        singular=singular,
        noun=noun,
        body=RecordBody,
        patch=RecordPatch,
        answer=RecordAnswer,
        table=Table(name=table, struct=ReferenceRecord, identity_column="id", identity_type=identity_type),
    )


def _named_site(said: Any, thing: Any, _now: datetime) -> Any:  # noqa: ANN401 - a body or a patch, and a site
    return thing if said.name else msgspec.structs.replace(thing, name=thing.domain)


_CAMPAIGN_IS_LIVE: Final = "campaign.deleted_at IS NULL AND advertiser.deleted_at IS NULL"
_CAMPAIGN: Final = """
    JOIN campaigns AS campaign ON campaign.id = it.campaign_id
    LEFT JOIN advertisers AS advertiser ON advertiser.id = campaign.advertiser_id
"""
_PLACEMENT: Final = """
    JOIN placements AS placement ON placement.id = it.placement_id
    LEFT JOIN publishers AS publisher ON publisher.id = placement.publisher_id
"""

# In the order in which they are written: what others name comes first.
KINDS: Final = (
    Kind(
        name="advertisers",
        singular="advertiser",
        noun="advertiser",
        body=advertiser.AdvertiserBody,
        patch=advertiser.AdvertiserPatch,
        answer=advertiser.AdvertiserAnswer,
        table=Table(name="advertisers", struct=advertiser.Advertiser, live="it.deleted_at IS NULL"),
    ),
    Kind(
        name="publishers",
        singular="publisher",
        noun="publisher",
        body=publisher.PublisherBody,
        patch=publisher.PublisherPatch,
        answer=publisher.PublisherAnswer,
        table=Table(name="publishers", struct=publisher.Publisher, live="it.deleted_at IS NULL"),
    ),
    Kind(
        name="sites",
        singular="site",
        noun="site",
        body=sites.body,
        patch=sites.patch,
        answer=sites.answer,
        owner=Role.PUBLISHER,
        references={"publisher_id": "publishers"},
        natural="domain",
        finished=_named_site,
        table=Table(
            name="sites",
            struct=sites.struct,
            foreign={"publisher_id": "publishers"},
            live="publisher_id_row.deleted_at IS NULL",
            owner="publisher_id_row.public_id",
        ),
    ),
    _records("brands", "brand", "brand", "brands"),
    _records("categories", "category", "category", "categories"),
    _records("products", "product", "product", "products"),
    _records("seoRecords", "seoRecord", "seo", "seo_records", "uuid"),
    Kind(
        name="placements",
        singular="placement",
        noun=IndexedNoun.PLACEMENT.value,
        body=placement.PlacementBody,
        patch=placement.PlacementPatch,
        answer=placement.PlacementAnswer,
        owner=Role.PUBLISHER,
        references={"publisher_id": "publishers", "site_id": "sites"},
        natural="slug",
        table=Table(
            name="placements",
            struct=placement.Placement,
            foreign={"publisher_id": "publishers", "site_id": "sites"},
            live="publisher_id_row.deleted_at IS NULL",
            owner="publisher_id_row.public_id",
            touched=(IndexedNoun.PLACEMENT, "id"),
        ),
    ),
    Kind(
        name="banners",
        singular="banner",
        noun=IndexedNoun.BANNER.value,
        body=banner.BannerBody,
        patch=banner.BannerPatch,
        answer=banner.BannerAnswer,
        owner=Role.ADVERTISER,
        references={
            "advertiser_id": "advertisers",
            "brand_id": "brands",
            "category_id": "categories",
            "product_id": "products",
            "seo_id": "seoRecords",
        },
        finished=lambda said, thing, now: said.scheduled(thing, now=now),
        table=Table(
            name="banners",
            struct=banner.Banner,
            foreign={"advertiser_id": "advertisers"},
            live="it.deleted_at IS NULL AND advertiser_id_row.deleted_at IS NULL",
            owner="advertiser_id_row.public_id",
            touched=(IndexedNoun.BANNER, "id"),
        ),
    ),
    Kind(
        name="campaigns",
        singular="campaign",
        noun=IndexedNoun.CAMPAIGN.value,
        body=campaign.CampaignBody,
        patch=campaign.CampaignPatch,
        answer=campaign.CampaignAnswer,
        owner=Role.ADVERTISER,
        references={"advertiser_id": "advertisers"},
        finished=lambda _said, thing, _now: thing.with_dates_checked(),
        table=Table(
            name="campaigns",
            struct=campaign.Campaign,
            foreign={"advertiser_id": "advertisers"},
            live="it.deleted_at IS NULL AND advertiser_id_row.deleted_at IS NULL",
            owner="advertiser_id_row.public_id",
            touched=(IndexedNoun.CAMPAIGN, "id"),
        ),
    ),
    Kind(
        name="links",
        singular="link",
        noun="link",
        body=assignment.LinkBody,
        patch=assignment.LinkPatch,
        answer=assignment.LinkAnswer,
        owner=Role.ADVERTISER,
        references={"campaign_id": "campaigns", "placement_id": "placements"},
        table=Table(
            name="campaign_placements",
            struct=assignment.Link,
            identity=("campaign_id", "placement_id"),
            foreign={"campaign_id": "campaigns", "placement_id": "placements"},
            joins=_CAMPAIGN + _PLACEMENT,
            live=f"{_CAMPAIGN_IS_LIVE} AND publisher.deleted_at IS NULL",
            owner="advertiser.public_id",
            touched=(IndexedNoun.PLACEMENT, "placement_id"),
            order="it.campaign_id, it.placement_id",
        ),
    ),
    Kind(
        name="assignments",
        singular="assignment",
        noun="assignment",
        body=assignment.AssignmentBody,
        patch=assignment.AssignmentPatch,
        answer=assignment.AssignmentAnswer,
        owner=Role.ADVERTISER,
        references={"campaign_id": "campaigns", "placement_id": "placements", "banner_id": "banners"},
        table=Table(
            name="banner_assignments",
            struct=assignment.Assignment,
            identity=("campaign_id", "placement_id", "banner_id"),
            foreign={"campaign_id": "campaigns", "placement_id": "placements", "banner_id": "banners"},
            joins=_CAMPAIGN
            + _PLACEMENT
            + "LEFT JOIN advertisers AS banner_owner ON banner_owner.id = banner_id_row.advertiser_id",
            live=f"{_CAMPAIGN_IS_LIVE} AND publisher.deleted_at IS NULL"
            " AND banner_id_row.deleted_at IS NULL AND banner_owner.deleted_at IS NULL",
            owner="advertiser.public_id",
            touched=(IndexedNoun.PLACEMENT, "placement_id"),
            order="it.campaign_id, it.placement_id, it.banner_id",
        ),
    ),
    Kind(
        name="targetingRules",
        singular="targetingRule",
        noun="targeting_rule",
        body=targeting_rule.TargetingRuleBody,
        patch=targeting_rule.TargetingRulePatch,
        answer=targeting_rule.TargetingRuleAnswer,
        owner=Role.ADVERTISER,
        references={"campaign_id": "campaigns"},
        finished=lambda _said, thing, _now: thing.checked(),
        table=Table(
            name="campaign_targeting_rules",
            struct=targeting_rule.TargetingRule,
            foreign={"campaign_id": "campaigns"},
            joins=_CAMPAIGN,
            live=_CAMPAIGN_IS_LIVE,
            owner="advertiser.public_id",
            touched=(IndexedNoun.CAMPAIGN, "campaign_id"),
        ),
    ),
    Kind(
        name="frequencyCaps",
        singular="frequencyCap",
        noun="frequency_cap",
        body=frequency.FrequencyCapBody,
        patch=frequency.FrequencyCapPatch,
        answer=frequency.FrequencyCapAnswer,
        owner=Role.ADVERTISER,
        references={"banner_id": "banners"},
        hangs_on="banner_id",
        table=Table(
            name="frequency_caps",
            struct=frequency.FrequencyCap,
            foreign={"banner_id": "banners"},
            joins="LEFT JOIN advertisers AS banner_owner ON banner_owner.id = banner_id_row.advertiser_id",
            live="banner_id_row.deleted_at IS NULL AND banner_owner.deleted_at IS NULL",
            owner="banner_owner.public_id",
            touched=(IndexedNoun.BANNER, "banner_id"),
        ),
    ),
)
KIND_NAMED: Final = {kind.name: kind for kind in KINDS}


def kinds_of(role: Role) -> tuple[Kind, ...]:
    """Tell what somebody moves: admins and viewers everything, an account what belongs to its role."""
    if role in {Role.ADMIN, Role.VIEWER}:
        return KINDS
    return tuple(kind for kind in KINDS if kind.owner is role)
