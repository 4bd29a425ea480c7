"""What stands at the top of a page, of a card, of a list of facts."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from markupsafe import Markup, escape
from nicegui import ui


@contextmanager
def heading(
    title: str, *, note: str = "", crumbs: Sequence[tuple[str, str]] = (), badge: str = ""
) -> Generator[None]:
    """Name a page; what is built inside stands at its right: buttons, mostly. `badge` is HTML (`badge()`)."""
    with ui.element("div").classes("al-heading"):
        trail = Markup(" <span>/</span> ").join(
            Markup('<a href="{}">{}</a>').format(href, label) for label, href in crumbs
        )
        above = Markup('<div class="al-crumbs">{} <span>/</span></div>').format(trail) if crumbs else ""
        below = Markup('<p class="quiet">{}</p>').format(note) if note else ""
        ui.html(f'{above}<div class="row-of"><h1>{escape(title)}</h1>{badge}</div>{below}', sanitize=False)
        with ui.element("div").classes("row-of"):
            yield


@contextmanager
def card(title: str = "", *, note: str = "", classes: str = "") -> Generator[ui.element]:
    """Frame a part of a page."""
    with ui.element("section").classes(f"al-card {classes}") as frame:
        if title:
            aside = Markup('<span class="quiet small">{}</span>').format(note) if note else ""
            ui.html(f"<h2>{escape(title)}</h2>{aside}", sanitize=False).classes("al-card-head")
        yield frame


def badge(text: str, kind: str = "") -> Markup:
    """Show a state as a small coloured word: good, warn, bad, info or none of them."""
    return Markup('<span class="al-badge {}">{}</span>').format(kind, text)


def facts(pairs: Sequence[tuple[str, str | Markup]]) -> None:
    """List what is known of a thing."""
    items = Markup("").join(Markup("<dt>{}</dt><dd>{}</dd>").format(name, value) for name, value in pairs)
    ui.html(items, sanitize=False, tag="dl").classes("al-facts")


def meter(share: float, kind: str = "") -> Markup:
    """Show a share of a whole as a bar."""
    percent = min(100.0, max(0.0, share * 100))
    return Markup('<div class="al-meter {}"><i style="width: {:.1f}%"></i></div>').format(kind, percent)
