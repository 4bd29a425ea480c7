"""The contextual part of a delivery process: what is known of pages, and texts from their readers' browsers."""

from typing import NamedTuple

from adloom.core.clock import Clock
from adloom.core.ids import SystemIds
from adloom.events.ingest.ivt.detector import TrafficDetector
from adloom.events.ingest.ivt.pages import PageCheck
from adloom.events.ingest.token import TokenSigner
from adloom.pages.classify.queue import ClassifyQueue
from adloom.runtime.random import fast_chance
from adloom.runtime.settings import DeliverySettings
from adloom.runtime.valkey import Valkey
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.background.site_tables import PageLoader, ShortlistLoader
from adloom.serving.contextual.api import SlotRoutes
from adloom.serving.contextual.classify_page import ClassifyPageRoutes, PageClaims
from adloom.serving.contextual.fill import SlotFiller
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.direct.api import CountTraffic
from adloom.serving.direct.frequency import DirectFrequency
from adloom.serving.eligibility.frequency_lookup import FrequencyLookup
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.reserve import Reserver
from adloom.serving.request.context import ContextParser
from adloom.serving.request.sender_limits import SenderCheck


class ContextualParts(NamedTuple):
    """The routes of contextual delivery."""

    slots: SlotRoutes
    texts: ClassifyPageRoutes


class SharedParts(NamedTuple):
    """What contextual delivery shares with the other kinds."""

    signer: TokenSigner
    contexts: ContextParser
    senders: SenderCheck
    frequency: FrequencyLookup
    detector: TrafficDetector
    pages: PageCheck
    count_traffic: CountTraffic


def build_contextual(  # noqa: PLR0913, PLR0917 - a composition root names them all
    settings: DeliverySettings,
    refresher: IndexRefresher,
    pages: PageLoader,
    shortlists: ShortlistLoader,
    valkey: Valkey,
    clock: Clock,
    *,
    leases: LocalLeases,
    shared: SharedParts,
) -> ContextualParts:
    recent = RecentTexts()
    filler = SlotFiller(
        refresher.states,
        Reserver(refresher.states, leases),
        shared.signer,
        public_url=settings.public_url,
        chance=fast_chance(),
        read_results=lambda _site_id: {},
    )
    return ContextualParts(
        SlotRoutes(
            lambda: refresher.current,
            pages,
            clock,
            SystemIds(),
            recent=recent,
            shortlists=shortlists,
            filler=filler,
            seal_user=shared.signer.seal_user,
            contexts=shared.contexts,
            senders=shared.senders,
            frequency=DirectFrequency(shared.frequency),
            page_check=shared.pages,
            count_traffic=shared.count_traffic,
        ),
        ClassifyPageRoutes(
            lambda: refresher.current,
            pages,
            ClassifyQueue(valkey),
            PageClaims(valkey),
            clock,
            recent=recent,
            find_rate_key=shared.detector.find_rate_key,
            per_site_per_minute=settings.texts_per_site_per_minute,
            per_address_per_minute=settings.texts_per_address_per_minute,
        ),
    )
