"""The overview of a site: the steps that it still needs, the proof that it is its publisher's, and what its pages are about."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json, ProblemError
from adloom.console.components.categories import describe_category
from adloom.console.components.charts.treemap import TreemapPart, add_treemap
from adloom.console.components.format import (
    format_ago,
    format_count,
    format_full_moment,
    format_percent,
    format_quantity,
)
from adloom.console.components.layout import (
    add_card,
    add_div,
    add_empty_state,
    add_hint,
    add_html,
    add_link_button,
    add_notice,
    add_snippet,
    build_badge,
    build_meter,
    set_attributes,
)
from adloom.console.components.messages import confirm, notify_success, open_dialog
from adloom.console.page import PageVisit
from adloom.console.pages.placements import PLACEMENTS
from adloom.console.pages.sites.approvals import count_decisions
from adloom.console.pages.sites.crawls import UNDER_WAY, crawl_notice, read_latest, start_crawl
from adloom.console.resource_pages import Reload

WHY: Final = (
    "Only of a verified site do we take the text of pages from readers' browsers. Without it the site is known by its "
    "crawls alone."
)
FORCE_NOTE: Final = "It counts as verified at once and without the file. Do this only when you know that the publisher owns the domain."


def build_verification_badge(site: Json) -> Markup:
    return build_badge("Verified", "good") if site["verifiedAt"] else build_badge("Not verified", "warn")


def describe_verification(site: Json) -> str:
    if site["verifiedAt"]:
        return f"{site['verifiedHost']}, since {format_full_moment(site['verifiedAt'])}. It is checked again every week."
    return WHY


async def open_verification(visit: PageVisit, site: Json, reload: Reload) -> None:
    """Open the dialog that leads through the steps."""
    asked = await visit.api.post(f"/admin/sites/{site['id']}/verification")
    with open_dialog(f"Prove that {site['domain']} is yours") as dialog:
        with ui.element("ol").classes("al-numbered"):
            with ui.element("li"):
                add_html("Create a text file with this line. Other lines do not matter.")
                add_snippet(asked["token"])
            with ui.element("li"):
                add_html(
                    "Make it readable at this address, without a log-in and without a redirect to another host."
                )
                add_snippet(asked["url"])
            with ui.element("li"):
                add_html("Press “Check now”. Leave the file in place: it is checked again every week.")
        said = add_div("stack tight")

        async def check() -> None:
            button.disable()
            said.clear()
            try:
                await visit.api.post(f"/admin/sites/{site['id']}/verify")
            except ProblemError as error:
                with said:
                    add_notice(error.message, kind="warn", title="Not yet")
                button.enable()
                return
            dialog.close()
            notify_success(f"{site['domain']} is verified.")
            await reload()

        with add_div("al-actions"):
            if visit.is_admin:
                ui.button("Verify without the file", on_click=lambda: _ask_force(visit, site, reload)).props(
                    "flat"
                )
            ui.button("Close", on_click=dialog.close).props("flat")
            button = ui.button("Check now", on_click=check).props("unelevated")


def _ask_force(visit: PageVisit, site: Json, reload: Reload) -> None:
    confirm(
        f"Verify {site['domain']} by your word?",
        FORCE_NOTE,
        action="Verify",
        on_confirm=lambda: visit.api.post(f"/admin/sites/{site['id']}/verify", {"force": True}),
        success=f"{site['domain']} is verified.",
        on_success=reload,
    )


LISTED_MAX: Final = 7


def show_topics(site: Json, topics: Json) -> None:
    items = sorted(topics["items"], key=lambda one: -one["pages"])
    pages_tab = f"/console/sites/{site['id']}?tab=pages"
    note = f"{format_count(topics['classified'])} classified pages" if items else ""
    with add_card("What it is about", note=note):
        if not items:
            add_empty_state(
                "category",
                "Nothing is known about its pages yet",
                "Start a crawl, or give pages yourself in the tab “Pages”.",
                action="To its pages",
                href=pages_tab,
            )
            return
        parts = [
            TreemapPart(id=one["id"], path=one["path"] or [one["name"]], pages=one["pages"]) for one in items
        ]
        with add_div("grid-of side"):
            add_treemap(
                parts,
                on_choose=lambda category: ui.navigate.to(f"{pages_tab}&category={category}"),
                description="Areas by the number of pages of each category",
            )
            add_html(_list_topics(items, topics["classified"], pages_tab))
        add_hint("Categories of the Content Taxonomy 3.1 by IAB Tech Lab, CC BY 3.0.")


def _list_topics(items: list[Json], classified: int, pages_tab: str) -> Markup:
    """List the largest categories: the areas can be clicked, and these links reached by keyboard."""
    rows = Markup("").join(
        Markup(
            '<li><a class="cut" href="{href}" title="{name}">{name}</a><b class="num">{share}</b>{bar}'
            '<span class="quiet small num">{pages}</span></li>'
        ).format(
            href=f"{pages_tab}&category={one['id']}",
            name=describe_category(one["id"]),
            share=format_percent(one["pages"] / max(1, classified), places=0),
            bar=build_meter(one["pages"] / max(1, classified)),
            pages=format_quantity(one["pages"], "page"),
        )
        for one in items[:LISTED_MAX]
    )
    return Markup('<ul class="al-shares">{}</ul>').format(rows)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step of setting a site up: what it is for, and whether it is done."""

    label: str
    note: str | Markup
    is_done: bool
    action: str = ""
    on_action: Callable[[], Awaitable[object]] | None = None
    href: str = ""


async def show_overview(visit: PageVisit, site: Json, reload: Reload) -> None:
    if site["isSuspended"]:
        add_notice(
            "No page of it gets a contextual ad. Switch this off in its settings.",
            kind="warn",
            title="Suspended",
        )
    if site["pacing"]["warmup"]:
        add_notice(
            "Its traffic is learned, and nothing is shown on it. Switch this off in its settings.",
            kind="warn",
            title="Warming up",
        )
    crawl = await read_latest(visit, site["id"])
    if crawl is not None and crawl["state"] in UNDER_WAY:
        crawl_notice(site, crawl)
    waiting = (await count_decisions(visit, site["id"]))["pending"]
    if waiting:
        text = (
            f"{format_count(waiting)} {'ad wants' if waiting == 1 else 'ads want'} to be shown on this site."
        )
        with add_notice(text, title="Waiting for your decision"):
            ui.link("Decide", f"{visit.path}?tab=approvals")
    topics = await visit.api.get(f"/admin/sites/{site['id']}/topics")
    slots = await visit.api.get("/admin/placements", siteId=site["id"], delivery="contextual", pageSize=1)
    _show_steps(
        visit, _list_steps(visit, site, reload, crawl=crawl, topics=topics, slots=slots["totalCount"])
    )
    show_topics(site, topics)


def _list_steps(  # noqa: PLR0913 - what the steps depend on
    visit: PageVisit, site: Json, reload: Reload, *, crawl: Json | None, topics: Json, slots: int
) -> list[Step]:
    async def start() -> None:
        if await start_crawl(visit, site):
            ui.navigate.to(f"{visit.path}?tab=crawls")

    is_verified = bool(site["verifiedAt"])
    return [
        Step(
            label="Prove that it is yours",
            note=describe_verification(site),
            is_done=is_verified,
            action="Check again" if is_verified else "Show me how",
            on_action=lambda: open_verification(visit, site, reload),
        ),
        Step(
            label="Read its pages",
            note=_describe_pages(visit, site, crawl, topics),
            is_done=topics["classified"] > 0,
            action="Crawl now",
            on_action=start,
        ),
        Step(
            label="Give it places for ads",
            note=f"{format_count(slots)} contextual placements are on this site."
            if slots
            else "A placement that is filled by context shows what fits each page.",
            is_done=slots > 0,
            action="New placement",
            href=write_new_slot_address(site),
        ),
    ]


def write_new_slot_address(site: Json) -> str:
    publisher = f"&publisher={site['publisherId']}" if site["publisherId"] else ""
    return f"{PLACEMENTS.new}?site={site['id']}{publisher}&delivery=contextual"


def _describe_pages(visit: PageVisit, site: Json, crawl: Json | None, topics: Json) -> Markup:
    if crawl is None and not topics["pages"]:
        return Markup("A crawl begins at {} and follows its links.").format(
            site["seedUrl"] or f"https://{site['domain']}/"
        )
    known = Markup("{} pages, {} of them classified.").format(
        format_count(topics["pages"]), format_count(topics["classified"])
    )
    return (
        known
        if crawl is None
        else known
        + Markup(" Last crawl: {}.").format(
            format_ago(crawl["finishedAt"] or crawl["startedAt"] or visit.now, now=visit.now)
        )
    )


def _show_steps(visit: PageVisit, steps: list[Step]) -> None:
    done = sum(step.is_done for step in steps)
    with (
        add_card("Set it up", note=f"{done} of {len(steps)} done", classes="flush"),
        ui.element("ul").classes("al-checks al-setup"),
    ):
        for step in steps:
            _show_step(visit, step)


def _show_step(visit: PageVisit, step: Step) -> None:
    with set_attributes(ui.element("li"), data_done=str(step.is_done).lower()):
        icon = "check_circle" if step.is_done else "radio_button_unchecked"
        ui.icon(icon).classes("good" if step.is_done else "quiet").props('aria-hidden="true"')
        text = Markup('<div class="strong">{}</div><div class="quiet small">{}</div>')
        add_html(text.format(step.label, step.note)).classes("say")
        with add_div("share"):
            _show_action(visit, step)


def _show_action(visit: PageVisit, step: Step) -> None:
    if not visit.may_write:
        add_html(build_badge("Done", "good") if step.is_done else build_badge("Not yet", "warn"))
        return
    look = "outline" if step.is_done else "unelevated"
    if step.href:
        add_link_button(step.action, step.href, look=look)
    elif step.on_action is not None:
        button = ui.button(step.action, on_click=step.on_action)
        button.props[look] = True
