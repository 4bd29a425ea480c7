"""Switching and scheduling a banner, on routes of their own."""

from datetime import datetime
from typing import Final

from adloom.catalog.banner.model import Banner
from adloom.catalog.banner.resource import banners
from adloom.resource.api import add_change_route, build_router
from adloom.resource.forms import build_patch
from adloom.runtime.http.api.shapes import Patch

SCHEDULE_FIELDS: Final = (
    "publish_at",
    "expires_at",
    "schedule_timezone",
    "recurrence_rule",
    "recurrence_window_start",
    "recurrence_window_end",
    "schedule_status",
)


def _schedule(banner: Banner, patch: Patch, now: datetime) -> Banner:
    return banners.apply(patch, banner, now)


def _activate(banner: Banner, _body: None, now: datetime) -> Banner:
    return banner.switched(is_active=True, now=now)


def _deactivate(banner: Banner, _body: None, now: datetime) -> Banner:
    return banner.switched(is_active=False, now=now)


router = build_router(banners)
add_change_route(
    router,
    banners,
    "schedule",
    _schedule,
    body=build_patch(
        "BannerSchedulePatch",
        "Changes of when a banner may be shown.",
        {name: banners.form_fields[name] for name in SCHEDULE_FIELDS},
    ),
    description="Say when a banner may be shown.",
)
add_change_route(router, banners, "activate", _activate, description="Switch a banner on.")
add_change_route(
    router,
    banners,
    "deactivate",
    _deactivate,
    description="Switch a banner off: it is not served until it is switched on again.",
)
