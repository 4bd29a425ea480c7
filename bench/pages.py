"""`adloom bench pages`: how soon a text makes its page known, and what that costs the serve route.

All on one machine: delivery, Valkey, PostgreSQL and one classifier. Texts are those that measure the classifier.
"""

import asyncio
import itertools
import statistics
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Final

import httpx
import msgspec
import typer

from adloom.core.ids import SystemIds
from bench.figures import SERVE, BenchTable, show
from bench.load import BenchSubject, Effort, Target, take_sample
from bench.processes import LoadError, ShowStatus, measure_usage
from bench.product import Product, run_product

SITES: Final = 4  # Each has its own bound on texts a minute.
KNOWN_SECONDS_MAX: Final = 30.0
POLL_SECONDS: Final = 0.01
P99: Final = 98
PERCENT: Final = 100


class GivenText(msgspec.Struct, frozen=True):
    """A text of the set that measures the classifier."""

    title: str
    text: str


class Reader:
    """Sends texts of unknown pages at a rate; if it `polls`, it measures when they are known."""

    def __init__(
        self, product: Product, slots: list[tuple[str, str]], texts: list[GivenText], *, polls: bool = True
    ) -> None:
        self._polls = polls
        self._url = f"http://127.0.0.1:{product.port}"
        self._slots = itertools.cycle(slots)
        self._texts = itertools.cycle(texts)
        self._new_id = SystemIds().make
        self.seconds: list[float] = []

    async def send(self, rate: float, seconds: float, *, stop: threading.Event | None = None) -> None:
        """Send until the time is over, or `stop` is set."""
        async with httpx.AsyncClient(base_url=self._url, timeout=30) as client, asyncio.TaskGroup() as group:
            began = time.monotonic()
            for number in range(int(rate * seconds)):
                if stop is not None and stop.is_set():
                    break
                await asyncio.sleep(began + number / rate - time.monotonic())
                group.create_task(self._send_one(client))

    async def _send_one(self, client: httpx.AsyncClient) -> None:
        (domain, slug), given = next(self._slots), next(self._texts)
        url = f"https://{domain}/{self._new_id()}"
        began = time.monotonic()
        text = {"url": url, "title": given.title, "text": given.text}
        answer = await client.post("/v1/classify-page", json=text, headers={"origin": f"https://{domain}"})
        if answer.status_code != HTTPStatus.ACCEPTED:
            raise LoadError(f"A text was answered {answer.status_code}: {answer.text}")
        while self._polls and time.monotonic() < began + KNOWN_SECONDS_MAX:
            page = await client.post("/v1/serve/batch", json={"url": url, "slots": [slug]})
            if page.json()["page"] == "known":
                self.seconds.append(time.monotonic() - began)
                return
            await asyncio.sleep(POLL_SECONDS)
        if self._polls:
            raise LoadError(f"A page was not known within {KNOWN_SECONDS_MAX:.0f} s.")


def main(
    *,
    seconds: Annotated[float, typer.Option(min=5, max=600, help="Length of each part.")] = 20.0,
    rate: Annotated[float, typer.Option(min=1, max=100, help="Texts a second, for how soon.")] = 10.0,
    beside: Annotated[float, typer.Option(min=1, max=100, help="Texts a second, beside serving.")] = 20.0,
    rounds: Annotated[int, typer.Option(min=1, max=20, help="Rounds of serving, with and without.")] = 3,
) -> None:
    """Send texts to a temporary product, until their pages are known; then serve, with and without texts beside."""

    def measure(say: ShowStatus) -> BenchTable:
        with run_product(workers=1) as product:
            say(f"creating {SITES} sites")
            slots = [make_slot(product, number) for number in range(SITES)]
            texts = read_texts()
            say("loading the classifier")
            asyncio.run(Reader(product, slots, texts).send(2, 2))
            say(f"{rate:g} texts a second")
            reader = Reader(product, slots, texts)
            asyncio.run(reader.send(rate, seconds))
            say("serving, with and without texts beside")
            sender = Reader(product, slots, texts, polls=False)
            serving = _measure_serving(product, sender, seconds, beside, rounds)
        percentiles = statistics.quantiles(reader.seconds, n=PERCENT)
        return BenchTable(
            title=f"{seconds:g} s each, 1 delivery process, 1 classifier",
            headings=["what", "figure"],
            rows=[
                [f"from text to known page, p50, {rate:g} a second", f"{percentiles[49] * 1000:.0f} ms"],
                ["p99", f"{percentiles[P99] * 1000:.0f} ms"],
                ["CPU of delivery for a text", f"{serving.text:.0f} µs"],
                ["CPU of a serve request", f"{serving.alone:.1f} µs"],
                [f"the same, {beside:g} texts a second beside", f"{serving.together:.1f} µs"],
                ["ratio", f"{serving.ratio:.2f}"],
            ],
        )

    show(measure)


def read_texts() -> list[GivenText]:
    lines = (files("adloom.benchmark") / "data" / "classification.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=GivenText) for line in lines if line]


def make_slot(product: Product, number: int) -> tuple[str, str]:
    """Make a verified site with a contextual slot; return its domain and the slug."""
    domain, slug = f"bench-{number}.example", f"bench-slot-{number}"
    site = product.ask_control("/admin/sites", {"domain": domain, "cronSchedule": None})
    product.ask_control(f"/admin/sites/{site['id']}/verify", {"force": True})
    placement = {"slug": slug, "label": slug, "layoutType": "full_static", "delivery": "contextual"}
    product.ask_control("/admin/placements", {**placement, "siteId": site["id"]})
    time.sleep(1)
    return domain, slug


class ServingCost(msgspec.Struct, frozen=True, kw_only=True):
    """CPU of delivery, in µs: for a text, and for a serve request without and with texts beside.

    What the texts themselves cost is not in the last.
    """

    text: float
    alone: float
    together: float
    ratio: float


def _measure_serving(
    product: Product, reader: Reader, seconds: float, rate: float, rounds: int
) -> ServingCost:
    target = Target(name=SERVE, port=product.port, path=product.serve_path)
    subject = BenchSubject(target=target, pids=product.delivery_pids)
    part = seconds / rounds
    text = _measure_text(product, reader, seconds, rate)
    alone: list[float] = []
    together: list[float] = []
    for number in range(rounds):
        effort = Effort(connections=8, seconds=part, serial_prefix=f"{number}-")
        alone.append(take_sample(subject, effort).cpu_micros)
        with _send_steadily(reader, rate):
            sample = take_sample(subject, effort)
        together.append(sample.cpu_micros - text * rate * sample.load.seconds / sample.load.requests)
    return ServingCost(
        text=text,
        alone=statistics.median(alone),
        together=statistics.median(together),
        ratio=statistics.median(more / less for more, less in zip(together, alone, strict=True)),
    )


def _measure_text(product: Product, reader: Reader, seconds: float, rate: float) -> float:
    """Measure the CPU µs of delivery for a text: while texts come, less what it uses at rest."""
    at_rest = _measure_cpu(product, seconds)
    with _send_steadily(reader, rate):
        return (_measure_cpu(product, seconds) - at_rest) / (seconds * rate) * 1e6


def _measure_cpu(product: Product, seconds: float) -> float:
    before = measure_usage(product.delivery_pids).cpu_seconds
    time.sleep(seconds)
    return measure_usage(product.delivery_pids).cpu_seconds - before


@contextmanager
def _send_steadily(reader: Reader, rate: float) -> Generator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(reader.send(rate, 600, stop=stop)))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
