"""The pure step of a site actor.

Its stored state is small: pages are read from their table whenever the actor becomes active. It stores the last version
that it has published, so that after a pause it publishes what has changed since, and only that.
"""

# pure

from collections.abc import Iterable
from datetime import datetime
from typing import assert_never
from uuid import UUID

import msgspec

from adloom.core.ids import SiteId
from adloom.core.random import Chance
from adloom.pages.follow.page_table import NO_PAGES, PageEntry, PageTable
from adloom.pages.site.messages import (
    SITE,
    ChangePages,
    CheckSite,
    ConfigureSite,
    PageCategoriesClassified,
    PagesListed,
    PagesWithdrawn,
    ReadPages,
    SiteConfig,
    SiteConfigured,
    SiteMessage,
    ToldUpTo,
)
from adloom.runtime.actors.actor import ActorKind, Effect, Persist, Publish, Reply, StepResult


class SiteState(msgspec.Struct, frozen=True, kw_only=True):
    """A site, and how far it has told its pages; `pages` are never stored."""

    site_id: SiteId
    config: SiteConfig | None = None
    config_version: int = -1  # None is known yet.
    told_version: int = 0
    pages: PageTable = NO_PAGES


Result = StepResult[SiteState]


def make_site(key: str, now: datetime) -> SiteState:
    del now
    return SiteState(site_id=SiteId(UUID(key)))


def step(state: SiteState, message: SiteMessage, now: datetime, chance: Chance) -> Result:
    """Take in a message; the answer to each is how far pages were told."""
    del now, chance
    after, effects = _take_in(state, message)
    return StepResult(after, (*effects, Reply(ToldUpTo(after.told_version))))


def _take_in(state: SiteState, message: SiteMessage) -> Result:
    match message:
        case ConfigureSite(version=version, config=config):
            return _configure(state, version, config)
        case ReadPages(table=table):
            return _replace_pages(state, table)
        case ChangePages(pages=pages):
            return _move_to(state, state.pages.with_changes(pages))
        case CheckSite():
            return StepResult(state)
        case _:
            assert_never(message)


def _configure(state: SiteState, version: int, config: SiteConfig | None) -> Result:
    if version <= state.config_version:
        return StepResult(state)
    after = msgspec.structs.replace(state, config=config, config_version=version)
    if config == state.config:
        return StepResult(after)
    told = _publish(state, SiteConfigured(state.site_id, version, config))
    return StepResult(after, (Persist(), told))


def _replace_pages(state: SiteState, table: PageTable) -> Result:
    if table.version < state.pages.version:
        return StepResult(state)  # It was read before what we know happened.
    if state.pages.entries or not state.told_version:
        return _move_to(state, table)
    # Active again: pages may have been removed meanwhile, and all but the newest were told.
    listed = _publish(state, PagesListed(state.site_id, table.version, tuple(table.entries)))
    news = [entry for entry in table.entries.values() if entry.version > state.told_version]
    return _publish_changes(state, table, news, (listed,))


def _move_to(state: SiteState, table: PageTable) -> Result:
    """Tell what is new in a table, and what is no longer there."""
    before = state.pages.entries
    news = [
        entry
        for url, entry in table.entries.items()
        if (known := before.get(url)) is None or known.version < entry.version
    ]
    gone = tuple(url for url in before if url not in table.entries)
    removed = (_publish(state, PagesWithdrawn(state.site_id, table.version, gone)),) if gone else ()
    return _publish_changes(state, table, news, removed)


def _publish_changes(
    state: SiteState, table: PageTable, news: Iterable[PageEntry], more: tuple[Effect, ...]
) -> Result:
    told_version = max(state.told_version, table.version)
    after = msgspec.structs.replace(state, pages=table, told_version=told_version)
    kept = (Persist(),) if told_version > state.told_version else ()
    return StepResult(after, (*kept, *more, *_publish_pages(after, news)))


def _publish_pages(state: SiteState, entries: Iterable[PageEntry]) -> Iterable[Effect]:
    slots = () if state.config is None else tuple(slot.slug for slot in state.config.slots)
    for entry in entries:
        if entry.classified_at is not None:
            categories = {category.id: category.confidence for category in entry.categories}
            yield _publish(
                state,
                PageCategoriesClassified(
                    site_id=state.site_id,
                    url=entry.url,
                    version=entry.version,
                    categories=categories,
                    slots=slots,
                    classified_at=entry.classified_at,
                ),
            )


def _publish(state: SiteState, news: msgspec.Struct) -> Publish:
    return Publish(str(state.site_id), news)


class SiteKind(ActorKind[SiteState, SiteMessage]):
    """Sites as actors."""

    def __init__(self) -> None:
        super().__init__(
            SITE,
            SiteState,
            step,
            make_site,
            on_waking=CheckSite(),
            messages=SiteMessage,
            replies=ToldUpTo,
        )

    def encode(self, state: SiteState) -> bytes:
        """Encode all but the pages: there may be 10,000, and they are in a table of their own."""
        return super().encode(msgspec.structs.replace(state, pages=NO_PAGES))
