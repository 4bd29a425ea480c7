"""The blocks of a page: heading, card, facts, tabs, tiles, notices and snippets."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Literal, TypeVar

from markupsafe import Markup, escape
from nicegui import ui

from adloom.console import strings
from adloom.console.client import ProblemError
from adloom.console.components.messages import notify_success

SPARK_WIDTH: Final = 100
SPARK_HEIGHT: Final = 30

Element = TypeVar("Element", bound=ui.element)


def set_attributes(element: Element, **values: str) -> Element:
    """Set attributes to any text; `aria_label` sets aria-label.

    A string of `props` is parsed: a quote in a value would end it, and a script could follow. So `props` gets our
    own constants only.
    """
    for name, value in values.items():
        element.props[name.replace("_", "-")] = value
    return element


def add_div(classes: str) -> ui.element:
    return ui.element("div").classes(classes)


def add_html(content: str = "", *, tag: str = "div") -> ui.html:
    """Show HTML. The caller escapes every text that is not ours, as `Markup` does."""
    return ui.html(content, sanitize=False, tag=tag)


def add_hint(text: str = "") -> ui.label:
    return ui.label(text).classes("quiet small")


def add_heading(
    title: str, *, note: str = "", crumbs: Sequence[tuple[str, str]] = (), badge: str = ""
) -> ui.element:
    """Show the title of a page, and return the place for its buttons. `badge` is HTML (`build_badge()`)."""
    with add_div("al-heading"):
        trail = Markup(" <span>/</span> ").join(
            Markup('<a href="{}">{}</a>').format(href, label) for label, href in crumbs
        )
        above = Markup('<div class="al-crumbs">{} <span>/</span></div>').format(trail) if crumbs else ""
        below = Markup('<p class="quiet">{}</p>').format(note) if note else ""
        add_html(f'{above}<div class="row-of"><h1>{escape(title)}</h1>{badge}</div>{below}')
        return add_div("row-of")


@contextmanager
def add_card(title: str = "", *, note: str = "", classes: str = "") -> Generator[ui.element]:
    with ui.element("section").classes(f"al-card {classes}") as frame:
        if title:
            aside = Markup('<span class="quiet small">{}</span>').format(note) if note else ""
            add_html(f"<h2>{escape(title)}</h2>{aside}").classes("al-card-head")
        yield frame


def add_link_button(label: str, href: str, *, icon: str | None = None, look: str = "outline") -> ui.button:
    button = set_attributes(ui.button(label, icon=icon), href=href)
    button.props[look] = True
    return button


def add_menu_entry(label: str, on_click: Callable[[], object]) -> ui.menu_item:
    """Add an entry of a menu; Quasar's own says that it is one of a list."""
    return set_attributes(ui.menu_item(label, on_click=on_click), role="menuitem")


def build_badge(text: str, kind: str = "") -> Markup:
    """Show a status; `kind` is good, warn, bad, info or empty."""
    return Markup('<span class="al-badge {}">{}</span>').format(kind, text)


def add_facts(pairs: Sequence[tuple[str, str | Markup]]) -> None:
    items = Markup("").join(Markup("<dt>{}</dt><dd>{}</dd>").format(name, value) for name, value in pairs)
    add_html(items, tag="dl").classes("al-facts")


def build_meter(share: float, kind: str = "") -> Markup:
    percent = min(100.0, max(0.0, share * 100))
    return Markup('<div class="al-meter {}"><i style="width: {:.1f}%"></i></div>').format(kind, percent)


NoticeKind = Literal["good", "warn", "bad", "info"]
ICONS: dict[NoticeKind, str] = {
    "good": "check_circle_outline",
    "warn": "warning_amber",
    "bad": "error_outline",
    "info": "info_outline",
}


def add_empty_state(  # noqa: PLR0913 - what empty states differ in
    icon: str,
    title: str,
    note: str,
    *,
    action: str = "",
    href: str = "",
    on_action: Callable[[], object] | None = None,
    is_all: bool = False,
) -> None:
    """Say why there is nothing; where that is all of the page, its title is that of the page."""
    tag = "h1" if is_all else "h2"
    with add_div("al-empty"):
        ui.icon(icon).props('aria-hidden="true"')
        add_html(f"<{tag}>{escape(title)}</{tag}><p>{escape(note)}</p>")
        if href:
            add_link_button(action, href, look="unelevated")
        elif on_action is not None:
            ui.button(action, on_click=on_action).props("unelevated")


def add_notice(text: str, *, kind: NoticeKind = "info", title: str = "", icon: str = "") -> ui.element:
    """Show a notice, and return the place for its buttons."""
    with add_div(f"al-notice {kind}").props('role="status"') as frame:
        ui.icon(icon or ICONS[kind]).props('aria-hidden="true"')
        head = f'<div class="strong">{escape(title)}</div>' if title else ""
        add_html(f"{head}<div>{escape(text)}</div>").classes("grow")
    return frame


def add_problem_notice(error: ProblemError) -> None:
    with add_div("stack"):
        add_html(f"<h1>{escape(strings.COULD_NOT_LOAD)}</h1>")
        add_notice(error.message, kind="bad")
        with add_div("row-of"):
            ui.button("Try again", on_click=ui.navigate.reload).props("outline")
            ui.link("To the overview", "/console")


def add_tab_links(path: str, current: str, labels: Mapping[str, str], *, label: str) -> None:
    """Show the tabs of a page, which `?tab=` selects."""
    views = [(text, f"{path}?tab={name}") for name, text in labels.items()]
    add_view_links(views, current=f"{path}?tab={current}", label=label)
    # On a phone the current tab may be outside the view.
    ui.run_javascript("adloom.reveal('.al-tabs [aria-current]')")


def add_view_links(views: Sequence[tuple[str, str]], *, current: str, label: str) -> None:
    """Show links to the views of a page, as label and address."""
    links = Markup("").join(
        Markup('<a href="{}"{}>{}</a>').format(
            href, Markup(' aria-current="page"') if href == current else "", text
        )
        for text, href in views
    )
    set_attributes(add_html(links, tag="nav").classes("al-tabs"), aria_label=label)


def _draw_sparkline(values: Sequence[float | None]) -> Markup:
    known = [(index, value) for index, value in enumerate(values) if value is not None]
    if len(known) < 2:  # noqa: PLR2004 - a line has two ends
        return Markup('<div class="al-spark"></div>')
    top = max(value for _, value in known) or 1
    step = SPARK_WIDTH / (len(values) - 1)
    points = [
        f"{index * step:.1f},{SPARK_HEIGHT - value / top * (SPARK_HEIGHT - 3):.1f}" for index, value in known
    ]
    line = "L".join(points)
    first, last = known[0][0] * step, known[-1][0] * step
    return Markup(
        '<div class="al-spark"><svg viewBox="0 0 {w} {h}" preserveAspectRatio="none" aria-hidden="true">'
        '<path class="area" d="M{first:.1f},{h}L{line}L{last:.1f},{h}Z"/><path class="line" d="M{line}"/></svg></div>'
    ).format(w=SPARK_WIDTH, h=SPARK_HEIGHT, line=line, first=first, last=last)


def add_tiles(*labels: str) -> "list[Tile]":
    with add_div("grid-of tiles"):
        return [Tile(label) for label in labels]


class Tile:
    """A label, a figure, a note and a sparkline."""

    def __init__(self, label: str, *, hint: str = "") -> None:
        self._label = label
        self._element = add_html("").classes("al-tile")
        if hint:
            self._element.tooltip(hint)

    def update(
        self, figure: str, *, note: str = "", values: Sequence[float | None] = (), kind: str = ""
    ) -> None:
        content = Markup(
            '<div class="label">{}</div><div class="figure {}">{}</div><div class="note">{}</div>{}'
        ).format(self._label, kind, figure, note, _draw_sparkline(values) if values else "")
        if self._element.content != content:
            self._element.content = content


def add_snippet(text: str) -> None:
    with add_div("al-snippet"):
        add_html(f"<code>{escape(text)}</code>", tag="pre")
        add_copy_button(text)


def add_copy_button(text: str) -> None:
    def copy() -> None:
        ui.clipboard.write(text)
        notify_success("Copied.")

    ui.button(icon="content_copy", on_click=copy).props('flat round aria-label="Copy"')
