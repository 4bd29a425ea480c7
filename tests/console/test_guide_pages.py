"""The guide inside the console: every page leads to the chapter that explains it, and every chapter is there."""

import re
import tomllib
from pathlib import Path

from adloom.console.guide import GUIDE, HELP, find_help, list_chapters, read_chapter, render
from adloom.console.page import REGISTERED
from adloom.core.caller import Role
from tests.console.visitor import Visitor, make_person
from tests.support.control import ControlPlane

ROOT = Path(__file__).resolve().parents[2]
HELP_LINK = re.compile(r'"aria-label":"The guide about this page"[^}]*?"href":"([^"]*)"')
LINK = re.compile(r'<a href="(/console/guide[^"]*)">')
NOT_FOUND = "/console/{rest:path}"


def is_there(address: str) -> bool:
    """Return whether a chapter and its heading exist."""
    path, _, anchor = address.partition("#")
    chapter = read_chapter(path.removeprefix(GUIDE).removeprefix("/") or "README")
    return chapter is not None and (not anchor or anchor in chapter.anchors)


def test_every_page_has_a_chapter_of_its_own_section(console: ControlPlane) -> None:
    del console  # It registers the pages.
    sections = {"/".join(path.split("/")[:3]) for path in REGISTERED - {NOT_FOUND}}

    assert len(sections) > 15
    assert sections - HELP.keys() == set()
    assert [path for path in HELP if not is_there(find_help(*path.partition("?")[::2]))] == []
    assert find_help("/console/campaigns/1", "targeting") == "/console/guide/targeting"
    assert find_help("/console/campaigns/1", "nothing") == "/console/guide/campaigns"
    assert find_help("/console/nowhere") == find_help("/console")


def test_every_link_of_the_guide_leads_to_a_chapter_and_a_heading() -> None:
    chapters = {name: chapter for name in list_chapters() if (chapter := read_chapter(name))}
    broken = {
        (name, link)
        for name, chapter in chapters.items()
        for link in LINK.findall(chapter.html)
        if not is_there(link)
    }

    assert len(list_chapters()) > 30
    assert broken == set()


def test_markdown_becomes_headings_code_and_links_that_work_here() -> None:
    chapter = render(
        "# One `two`, & three?\n\n[a](tag.md#what-is-counted) [b](../decisions/1.md) [c](https://x.example/)\n\n"
        "```sh run\n# no heading\n```\n\n| a | b |\n|---|---|\n| `x` | y_z_w |\n"
    )

    assert (chapter.title, chapter.anchors) == ("One two, &amp; three?", {"one-two--three"})
    assert '<a href="/console/guide/tag#what-is-counted">a</a> b <a href="https://x.example/"' in chapter.html
    assert "<code># no heading\n</code>" in chapter.html
    assert "<td>y_z_w</td>" in chapter.html


async def test_pages_link_to_their_chapter_which_is_there_for_every_role(console: ControlPlane) -> None:
    await make_person(console, "bob@example.com", Role.PUBLISHER)
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")

        for path in ("/console", "/console/placements", "/console/system", "/console/placements?tab=ads"):
            page = (await bob.get(path)).text.replace("&quot;", '"')
            [target] = HELP_LINK.findall(page)
            chapter = await bob.get(target.partition("#")[0])
            assert (chapter.status_code, is_there(target)) == (200, True), path
        front = await bob.get(GUIDE)
        for wrong in ("nothing", "..%2F..%2FREADME", "%2e%2e"):
            assert (await bob.get(f"{GUIDE}/{wrong}")).status_code == 404

    assert "Three ways in" in front.text


def test_the_package_contains_the_guide() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]

    assert wheel["force-include"] == {"docs/guide": "adloom/guide"}
