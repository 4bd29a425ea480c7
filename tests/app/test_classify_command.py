"""`adloom classify` prints what a page is about and why, or says in one line why it cannot."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from adloom.cli.classify import read_source
from adloom.cli.options import ClassifyCommandError
from tests.support.forked import run_forked

ARTICLE = (
    "<html lang='en'><head><title>Champion reaches the last eight</title></head><body><article><p>The defending "
    "champion beat a young qualifier in five sets on the centre court. He served eighteen aces, but his backhand let "
    "him down. In the quarter-final of the tennis tournament he meets the number four of the world.</p></article>"
)
pytestmark = pytest.mark.process


def adloom(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return run_forked([sys.executable, "-m", "adloom", *arguments], given=given, timeout=100)


def test_a_file_is_classified_for_people(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(ARTICLE, encoding="utf-8")

    done = adloom("classify", str(path))

    assert done.returncode == 0, done.stderr
    assert "Tennis" in done.stdout
    assert "phrases that decided" in done.stdout


def test_standard_input_is_classified_as_json() -> None:
    done = adloom("classify", "-", "--json", given=ARTICLE)

    answer = json.loads(done.stdout)
    assert answer["language"] == "en"
    assert answer["categories"][0]["path"] == ["Sports", "Tennis"]
    assert answer["evidence"][0]["phrase"]


def test_what_cannot_be_read_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    done = adloom("classify", "/no/such/file")

    assert done.returncode == 1
    assert "cannot be read" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    for source, complaint in (("-", "nothing to read"), ("http://127.0.0.1/", "cannot be fetched")):
        with pytest.raises(ClassifyCommandError, match=complaint) as raised:
            read_source(source, {})
        assert len(str(raised.value).splitlines()) == 1
