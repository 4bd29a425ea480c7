"""`adloom classify`: what a page is about, and why, for a person at a terminal."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from adloom.cli.options import ClassifyCommandError
from adloom.pages.classify.protocol import Classification, PageContent
from adloom.pages.text.extract import TextExtractor
from adloom.pages.text.extracted import ExtractedPage
from adloom.pages.text.language import detect_language
from adloom.runtime.outbound.client import open_outbound
from adloom.runtime.outbound.failure import OutboundError
from adloom.runtime.outbound.settings import OutboundSettings
from adloom.runtime.process.tuning import use_one_thread
from adloom.runtime.settings import read_settings
from adloom.taxonomy.iab import load_content

BYTES_MAX = 2 * 2**20
OK = 200


def run(source: str, variables: Mapping[str, str], *, is_json: bool) -> None:
    """Read a page from a URL, a file or standard input, and print what it is about."""
    use_one_thread()
    page = read_source(source, variables)
    from adloom.pages.classify.embedded.classifier import load_embedded_classifier  # noqa: PLC0415 - NumPy

    classifier = load_embedded_classifier()
    found = classifier.classify_now(page)
    if is_json:
        sys.stdout.write(msgspec.json.encode(describe(page, found)).decode() + "\n")
    else:
        print_classification(Console(), page, found)


def read_source(source: str, variables: Mapping[str, str]) -> PageContent:
    if source.startswith(("http://", "https://")):
        return asyncio.run(_fetch(source, variables))
    try:
        body = sys.stdin.buffer.read(BYTES_MAX + 1) if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise ClassifyCommandError(f"{source} cannot be read: {error.strerror}.") from error
    if len(body) > BYTES_MAX:
        raise ClassifyCommandError(f"{source} is too long: at most {BYTES_MAX} bytes are read.")
    return read_page_bytes(body, address="https://page.invalid/")


def read_page_bytes(body: bytes, *, address: str) -> PageContent:
    """Read HTML; what has no tags is taken as plain text."""
    text = body.decode("utf-8", "replace").strip()
    if not text:
        raise ClassifyCommandError("There is nothing to read.")
    if "<" not in text:
        return PageContent(text=text, language=detect_language(text))
    page = TextExtractor().extract(body, address=address)
    if not isinstance(page, ExtractedPage):
        raise ClassifyCommandError(f"The page cannot be read: {page.replace('_', ' ')}.")
    return PageContent(title=page.title, description=page.description, text=page.text, language=page.language)


def describe(page: PageContent, found: Classification) -> dict[str, object]:
    return {
        "title": page.title,
        "language": page.language,
        "categories": [
            {"id": one.id, "path": load_content().find_path(one.id), "confidence": one.confidence}
            for one in found.categories
        ],
        "evidence": found.evidence,
    }


def print_classification(console: Console, page: PageContent, found: Classification) -> None:
    if page.title:
        console.print(page.title, style="bold", markup=False)
    console.print(f"language: {page.language or 'not known'}", markup=False)
    if not found.categories:
        console.print("Nothing is likely enough: the page has no category.")
        return
    table = Table("category", "id", "confidence", "phrases that decided", box=None, pad_edge=False)
    for one in found.categories:
        phrases = ", ".join(
            f"{evidence.phrase} ({evidence.similarity:.2f})"
            for evidence in found.evidence
            if evidence.category == one.id
        )
        table.add_row(" › ".join(load_content().find_path(one.id)), one.id, f"{one.confidence:.2f}", phrases)  # noqa: RUF001 - for people
    console.print(table)


async def _fetch(url: str, variables: Mapping[str, str]) -> PageContent:
    settings = read_settings(OutboundSettings, variables, process="adloom")
    try:
        async with open_outbound(settings) as client:
            answer = await client.get(url)
    except OutboundError as error:
        raise ClassifyCommandError(f"{url} cannot be fetched: {error}") from error
    if answer.status != OK:
        raise ClassifyCommandError(f"{url} answered {answer.status}.")
    return read_page_bytes(answer.body, address=answer.url)
