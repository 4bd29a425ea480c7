"""The list of what needs attention, with a way to each thing."""

from typing import Final

from markupsafe import Markup
from nicegui import ui

from adloom.console.client import Json
from adloom.console.components.format import ago
from adloom.console.components.notice import empty_state
from adloom.console.page import Visit

LOOK_AT: Final = {"ledger": "System", "processes": "System", "jobs": "Jobs"}


WAYS: Final = {
    "campaign": "/console/campaigns/{id}",
    "banner": "/console/banners/{id}",
    "adAccount": "/console/sync",
}
HOUSE_WAYS: Final = {"ledger": "/console/system", "processes": "/console/system", "jobs": "/console/jobs"}


class Attention:
    """Reads what needs attention, and shows it."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._list = ui.html("", sanitize=False).classes("al-list")
        self._nothing = ui.element("div")
        with self._nothing:
            empty_state("task_alt", "Nothing needs your attention.", "")

    async def refresh(self) -> None:
        """Look again."""
        answer = await self._visit.api.get("/admin/attention")
        items: list[Json] = answer["items"]
        shown = [self._item(item) for item in items]
        for kind, total in answer["counts"].items():
            hidden = total - sum(item["kind"] == kind for item in items)
            if hidden > 0:
                more = f"and {hidden} more of this kind"
                shown.append(Markup('<div class="quiet small">{}</div>').format(more))
        content = Markup("").join(shown)
        if self._list.content != content:
            self._list.content = content
        self._list.set_visibility(bool(shown))
        self._nothing.set_visibility(not shown)

    def _item(self, item: Json) -> Markup:
        about, rest = Markup(""), item["message"]
        if item["name"] is not None:
            href = WAYS.get(item["noun"], "").format(id=item["id"])
            about = Markup('<a href="{}">{}</a> ').format(href, item["name"])
            if item["kind"] == "expiring":
                rest = Markup("{} {}").format("ends", ago(item["at"], now=self._visit.now))
        elif item["kind"] in HOUSE_WAYS:
            way = Markup(' <a href="{}">{}</a>').format(HOUSE_WAYS[item["kind"]], LOOK_AT[item["kind"]])
            rest = Markup("{}{}").format(rest, way)
        return Markup('<div class="al-look is-{}"><i></i><span>{}{}</span></div>').format(
            item["level"], about, rest
        )
