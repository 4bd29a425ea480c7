"""Syncing by hand: asking for it, and following its jobs until the figures are new."""

from typing import Final

from nicegui import ui

from adloom.console import strings
from adloom.console.client import Json
from adloom.console.components.heading import meter
from adloom.console.components.toast import say_bad, say_good
from adloom.console.page import Visit

MANAGER: Final = "/api/ads-manager"
LOOK_SECONDS: Final = 0.7
SAID_SECONDS: Final = 1.5  # For the message to be read, before the page is loaded anew.
LEVELS: Final = {"CAMPAIGN": "campaigns", "ADSET": "adsets", "AD": "ads"}


def ask_sync(visit: Visit, asked: Json) -> None:
    """Ask whether the days shall be fetched anew, and show how it goes."""
    with ui.dialog(value=True) as dialog, ui.card():
        ui.html("<h2>Sync these days</h2>", sanitize=False)
        ui.label(f"The days {asked['dateFrom']} to {asked['dateTo']} are fetched anew, one job a level.")
        progress = ui.html("", sanitize=False).classes("stack tight")

        async def start() -> None:
            button.disable()
            body = {name: str(asked[name]) for name in ("sellerId", "dateFrom", "dateTo") if asked[name]}
            answer = await visit.api.post(f"{MANAGER}/sync", body)
            say_good(f"{answer['enqueued']} jobs are started." if answer["enqueued"] else "They run already.")
            with dialog:
                timer = ui.timer(LOOK_SECONDS, lambda: look(answer["jobIds"], timer))

        async def look(job_ids: list[str], timer: ui.timer) -> None:
            jobs = [
                await visit.api.get(f"{MANAGER}/jobs/{one}", sellerId=asked["sellerId"]) for one in job_ids
            ]
            progress.content = "".join(_line(job) for job in jobs)
            if any(job["state"] in {"waiting", "active"} for job in jobs):
                return
            timer.deactivate()
            failed = next((job for job in jobs if job["state"] == "failed"), None)
            if failed is not None:
                say_bad(f"A job has failed: {failed['error'] or ''}")
                return
            say_good("Synced. The figures are new.")
            with dialog:
                ui.timer(SAID_SECONDS, ui.navigate.reload, once=True)

        with ui.element("div").classes("al-actions"):
            ui.button("Close", on_click=dialog.close).props("flat")
            ui.button("To the jobs").props('flat href="/console/jobs?queue=stats-sync"')
            button = ui.button("Sync now", on_click=start).props("unelevated")


def _line(job: Json) -> str:
    share = 1.0 if job["state"] == "completed" else job["progress"]
    kind = {"completed": "good", "failed": "bad"}.get(job["state"], "")
    label = strings.LEVELS[LEVELS[job["level"]]]
    return f'<div class="row-of apart small"><span>{label}</span><span class="quiet">{job["state"]}</span></div>{meter(share, kind)}'
