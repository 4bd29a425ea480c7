"""The guide's choices in the address of its page, so that a reload loses nothing."""

import base64
import binascii
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from adloom.console.client import ApiClient, ProblemError
from adloom.console.components.format import format_moment
from adloom.console.pages.first_campaign.steps import STEPS, CampaignPlan, choose_place

LENGTH_MAX: Final = 12_000  # Servers refuse longer addresses: then a reload begins anew.
YEAR_MAX: Final = 9999
LAST: Final = 4  # The step after all others: everything is made.
WITH_ID: Final = ("placement", "banner", "campaign")


class KeptWhere(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Where the ad should be, as the form has it."""

    choice: str
    label: str | None = None
    layout_type: str | None = None
    placement_id: UUID | None = None


class KeptBanner(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What readers see, with what a file says of itself."""

    headline: str
    title: str
    primary_image_url: str
    cta_url: str | None = None
    cta_label: str | None = None
    subheadline: str | None = None
    mobile_image_url: str | None = None
    media_variants: dict[str, str] | None = None
    width: int | None = None
    height: int | None = None


class KeptCampaign(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """How it should run."""

    name: str
    ends_at: str | None = None
    bid_amount: float | None = None
    budget_daily_paisa: int | None = None


class KeptPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A plan as it is in the address: the choices, and what was made of them, by id."""

    step: int
    where: KeptWhere | None = None
    banner: KeptBanner | None = None
    campaign: KeptCampaign | None = None
    made: dict[str, UUID | None] = {}


def write_query(plan: CampaignPlan, step: int) -> str:
    """Return the query of the address that keeps a plan; empty for one that is too long."""
    kept: dict[str, Any] = {
        "step": step,
        "made": {name: one["id"] if name in WITH_ID else None for name, one in plan.made.items()},
    }
    kept |= {name: chosen for name in ("where", "banner", "campaign") if (chosen := getattr(plan, name))}
    text = base64.urlsafe_b64encode(msgspec.json.encode(kept)).decode().rstrip("=")
    return urlencode({"plan": text}) if len(text) <= LENGTH_MAX else ""


async def read_plan(api: ApiClient, text: str) -> tuple[CampaignPlan, int]:
    """Return the plan and the step of an address; what is not a plan, or not true any more, begins anew."""
    kept = _decode(text)
    plan = CampaignPlan()
    if kept is None or kept.where is None:
        return plan, 0
    plan.where = msgspec.to_builtins(kept.where)
    try:
        await choose_place(api, plan)
        plan.made = await _read_made(api, kept.made)
    except ProblemError:
        return CampaignPlan(), 0
    chosen = (kept.where, kept.banner, kept.campaign)
    plan.banner = msgspec.to_builtins(kept.banner) if kept.banner else {}
    plan.campaign = msgspec.to_builtins(kept.campaign) if kept.campaign else {}
    reached = next((number for number, one in enumerate(chosen) if one is None), len(chosen))
    if all(step in plan.made for step in STEPS):
        reached = LAST
    return plan, max(0, min(kept.step, reached))


def _decode(text: str) -> KeptPlan | None:
    if not text or len(text) > LENGTH_MAX:
        return None
    try:
        kept = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=KeptPlan)
        ends_at = format_moment(kept.campaign.ends_at if kept.campaign else None)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None
    # The last years of the calendar end earlier elsewhere.
    return kept if ends_at is None or 1 < ends_at.year < YEAR_MAX else None


async def _read_made(api: ApiClient, ids: dict[str, UUID | None]) -> dict[str, Any]:
    """Read what was made, up to the first step that was not."""
    made: dict[str, Any] = {}
    for step in STEPS:
        if step not in ids:
            break
        made[step] = await api.get(f"/admin/{step}s/{ids[step]}") if step in WITH_ID else {}
    return made
