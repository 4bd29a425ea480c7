"""The contextual part of a delivery process: what is known of pages, and texts from their readers' browsers."""

from collections.abc import Callable
from typing import NamedTuple

from adloom.core.clock import Clock
from adloom.core.ids import SystemIds
from adloom.pages.classify.queue import ClassifyQueue
from adloom.runtime.http.fast.fast_routes import FastRequest
from adloom.runtime.settings import DeliverySettings
from adloom.runtime.valkey import Valkey
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.background.page_loader import PageLoader
from adloom.serving.contextual.classify_page import ClassifyPageRoutes, PageClaims
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.contextual.serve_batch import SlotRoutes


class ContextualParts(NamedTuple):
    """The routes of contextual delivery."""

    slots: SlotRoutes
    texts: ClassifyPageRoutes


def build_contextual(  # noqa: PLR0913 - a composition root names them all
    settings: DeliverySettings,
    refresher: IndexRefresher,
    pages: PageLoader,
    valkey: Valkey,
    clock: Clock,
    *,
    find_rate_key: Callable[[FastRequest], bytes | None],
) -> ContextualParts:
    recent = RecentTexts()
    return ContextualParts(
        SlotRoutes(lambda: refresher.current, pages, clock, SystemIds(), recent=recent),
        ClassifyPageRoutes(
            lambda: refresher.current,
            pages,
            ClassifyQueue(valkey),
            PageClaims(valkey),
            clock,
            recent=recent,
            find_rate_key=find_rate_key,
            per_site_per_minute=settings.texts_per_site_per_minute,
            per_address_per_minute=settings.texts_per_address_per_minute,
        ),
    )
