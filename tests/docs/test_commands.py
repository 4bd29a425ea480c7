"""Every command of the documentation is run against one real `adloom up`."""

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import MONITORING, ROOT, RUNNABLE, pages, runnable_blocks
from tests.support.forked import FORKED_COMMAND, fork_server
from tests.support.product import Product, clean_environment, status_of, wait_until

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        not (shutil.which("bash") and shutil.which("curl")), reason="the pages use bash and curl"
    ),
]

GUIDE = (
    "docs/guide/README.md",
    "docs/guide/sample.md",
    "docs/guide/placements.md",
    "docs/guide/taxonomies.md",
    "docs/guide/sites.md",
    "docs/guide/banners.md",
    "docs/guide/campaigns.md",
    "docs/guide/targeting.md",
    "docs/guide/schedules.md",
    "docs/guide/serving.md",
    "docs/guide/contextual.md",
    "docs/guide/tag.md",
    "docs/guide/events-and-statistics.md",
    "docs/guide/conversions.md",
    "docs/guide/budgets.md",
    "docs/guide/auctions.md",
    "docs/guide/scoring.md",
    "docs/guide/publishers.md",
    "docs/guide/pictures.md",
    "docs/guide/what-if.md",
    "docs/guide/statistics.md",
    "docs/guide/stats-sync.md",
    "docs/guide/topics.md",
    "docs/guide/privacy.md",
    "docs/guide/import-and-export.md",
    "docs/guide/history.md",
    "docs/guide/console.md",
    "docs/guide/accounts-and-access.md",
    "docs/guide/operating.md",
    "docs/guide/settings.md",
    "docs/guide/monitoring.md",
    "docs/guide/event-log.md",
    "docs/guide/jobs.md",
    "docs/guide/troubleshooting.md",
    "docs/guide/benchmarks.md",
    "docs/guide/backups.md",
)
ROUTE = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE) (/(?:admin|api|auth|banners|events|v1)/[^`?\s,]+)")
METRIC = re.compile(r"`(adloom_\w*[a-z])[`{]")
# Only workers that share their actors export these.
OF_NATS = ("adloom_brain_shard", "adloom_brain_fenced_writes", "adloom_brain_streams_made")
SCRIPT_SECONDS_MAX = 600  # The whole guide, with replays and restarts, on a busy machine.
END_OF_BLOCK = "=== the end of a block"
# `uv run` would look for packages first; the commands are those of this environment. One variable leads them to the
# test's own product, which has other ports. Each is started as a reader does once, and is forked from then on.
PREAMBLE = """
set -euo pipefail
adloom_again() { "$PYTHON" -I -S "$FORKED_COMMAND" "$FORK_SERVER" adloom "$@"; }
uv() {
  case "$2" in
    adloom) if mkdir "$STARTED/$3" 2>&-; then "$PYTHON" -m adloom "${@:3}"; else adloom_again "${@:3}"; fi ;;
    python) "$PYTHON" "${@:3}" ;;
    *) return 1 ;;
  esac
}
# A second is enough for a reader, but not for a machine that runs all tests.
sleep() {
  case "$1" in
    *.*) command sleep "$1" ;;
    *) command sleep "$((3 * $1))" ;;
  esac
}
"""


@pytest.fixture(scope="module")
def product(sample_product: Product) -> Product:
    return sample_product


def outputs_of(blocks: list[str], product: Product, folder: Path) -> list[str]:
    """Run blocks in one shell, and return the output of each."""
    started = folder.with_name(f"{folder.name}-started")
    started.mkdir()
    done = subprocess.run(
        ["bash", "-c", PREAMBLE + f'\necho "{END_OF_BLOCK}"\n'.join([*blocks, ""])],  # noqa: S607 - bash on the path
        cwd=folder,
        env={
            **clean_environment(),
            "PATH": f"{Path(sys.executable).parent}:{clean_environment()['PATH']}",
            "PYTHON": sys.executable,
            "ADLOOM_DATA_DIR": str(product.data_dir),
            "FORKED_COMMAND": str(FORKED_COMMAND),
            "FORK_SERVER": fork_server(),
            "STARTED": str(started),
        },
        capture_output=True,
        text=True,
        timeout=SCRIPT_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.split(f"{END_OF_BLOCK}\n")[:-1]


def test_your_first_ad_is_shown_clicked_and_counted(product: Product, tmp_path: Path) -> None:
    outputs = outputs_of(runnable_blocks("README.md"), product, tmp_path)

    served, counted = json.loads(outputs[-2]), outputs[-1].splitlines()
    assert [banner["title"] for banner in served["banners"]] == ["Autumn"]
    assert counted[0] == "302 to https://shop.example.com/"
    totals = json.loads(counted[1])["totals"]
    assert (totals["impressions"], totals["clicks"], totals["ctr"]) == (1, 1, 1.0)


@pytest.mark.timeout(SCRIPT_SECONDS_MAX + 60)
def test_the_guide_works_as_printed(product: Product, tmp_path: Path) -> None:
    blocks = runnable_blocks(*GUIDE)

    outputs = dict(zip(blocks, outputs_of(blocks, product, tmp_path), strict=True))

    # Those that the pages show: an unknown slug, a late change, a wrong rule and a wrong event.
    refusals = Counter(re.findall(r'"errorCode":"(\w+)"', "".join(outputs.values())))
    assert refusals == {"PLACEMENT_NOT_FOUND": 2, "STALE_WRITE": 2, "VALIDATION_FAILED": 2}
    served = json.loads(answer_to("sleep 1\ncurl -s -w '\\n' $DELIVERY/banners/serve", outputs))
    assert [banner["headline"] for banner in served["banners"]] == ["Leaves are free"]
    assert {
        one["outcome"] for one in json.loads(answer_to('home-aside?country=FR"', outputs))["candidates"]
    } <= {
        "won",
        "lost",
        "removed",
    }
    assert answer_to("events/impression", outputs).count('{"accepted":true}') == 2
    totals = json.loads(answer_to("groupBy=banner&campaignId", outputs))["totals"]
    assert (totals["impressions"], totals["clicks"]) == (1, 1)
    budget, spend = map(json.loads, answer_to("campaigns/$LAMPS/budget", outputs).splitlines())
    assert (budget["spentTodayPaisa"], budget["heldPaisa"], budget["remainingTodayPaisa"]) == (100, 100, 200)
    assert (spend["spentPaisa"], spend["heldPaisa"], spend["remainingPaisa"]) == (100, 100, 300)
    followed = answer_to("spend/stream", outputs)
    assert followed.index("event: listening\n") < followed.index("event: spend\n")
    assert '"spentTotalPaisa":200,' in followed
    assert '"hour":"' in answer_to("stats 'groupBy=hour", outputs)
    assert answer_to("groupBy=day,banner&format=csv", outputs).startswith(
        "date,bannerId,bannerTitle,impressions,clicks,"
    )
    assert '"enqueued":3,' in answer_to("ads POST sync", outputs)
    reports = [json.loads(line) for line in answer_to("report sellpages", outputs).splitlines()]
    assert [body["meta"]["totalRows"] for body in reports] == [1, 1, 1, 1]
    assert reports[0]["rows"][0]["spend"] == reports[3]["rows"][0]["adSpend"] > 2_000
    assert answer_to("reports/campaigns?", outputs).startswith("id,sellerId,adAccountId,sellpageId,name,")
    assert '"hasCredentials":true' in answer_to("EAAB", outputs)
    assert " events " in answer_to("adloom rollup", outputs)
    assert "0 dead, " in answer_to("adloom jobs list", outputs)
    assert " valid\n" in answer_to("consumer.py ads.impression", outputs)
    assert "frequency has counted" in answer_to("replay --projection frequency", outputs)
    exported = json.loads(answer_to("click-of-a-visitor", outputs).splitlines()[-1])
    assert [item["sessionId"] for item in exported["items"]] == ["s-1"]
    erased, emptied = map(json.loads, answer_to("api DELETE privacy", outputs).splitlines())
    assert (erased["clicks"], emptied["totalCount"]) == (1, 0)
    assert json.loads(answer_to("noun=reader", outputs))["totalCount"] == 1
    assert "No figure has changed." in answer_to("replay --projection event_tables\n", outputs)
    assert answer_to("event_tables --from", outputs).count("No figure has changed.") == 2
    assert '"key":"adk_' in answer_to("api-keys", outputs)
    assert answer_to("/health/ready", outputs).count('"status":"ok"') >= 3
    assert 'adloom_build_info{process="delivery-1"' in answer_to('["metrics_ports"]["delivery-1"]', outputs)
    assert checks_missing_in_the_table(answer_to("adloom doctor\n", outputs)) == set()
    assert "The books agree." in answer_to("adloom doctor --money", outputs)
    assert "frequency" in answer_to("ledger status", outputs)
    assert "1 dead letters" in answer_to("no event", outputs)
    assert answer_to("dead forget", outputs).endswith("There are no dead letters.\n")
    spooled = answer_to("kill -STOP", outputs)
    assert spooled.count('{"accepted":true}') == 3
    # Those of the guide, and those of the sample's visitors.
    assert max(map(int, re.findall(r": (\d+) events in 1 file", spooled))) >= 3
    # At its end the guide restores the backup over the database.
    address = f"{product.delivery_url}/banners/serve/home-aside"
    wait_until(product.is_well, seconds=30, what="well after the restore")
    assert status_of(address) == 200


def test_every_page_with_commands_is_run() -> None:
    with_commands = {
        page.relative_to(ROOT).as_posix() for page in pages() if RUNNABLE.search(page.read_text("utf-8"))
    }

    assert with_commands - {*GUIDE} == {"README.md"}


def test_every_metric_is_in_the_table_and_no_page_names_another(product: Product) -> None:
    table = MONITORING.read_text(encoding="utf-8")
    named = {name for page in guide_pages() for name in METRIC.findall(page.read_text(encoding="utf-8"))}

    names = {
        name
        for port in product.installation.metrics_ports.values()
        for name in metrics_at(f"http://127.0.0.1:{port}/metrics")
    }

    assert len(names) > 10
    assert {name for name in names if f"`{name}" not in table} == set()
    # Some pages say how the names of their metrics begin.
    assert {name for name in named if not any(one.startswith(name) for one in names)} == {
        name for name in named if name.startswith(OF_NATS)
    }


def test_every_route_that_a_page_names_exists(product: Product) -> None:
    paths: dict[str, Any] = json.loads(read(f"{product.control_url}/openapi.json"))["paths"]
    routes = [re.compile(re.sub(r"{\w+}", "[^/]+", path)) for path in paths]

    named = {path for page in guide_pages() for path in ROUTE.findall(page.read_text(encoding="utf-8"))}

    assert len(named) > 50
    assert {path for path in named if not any(route.fullmatch(path.rstrip(".")) for route in routes)} == {
        "/admin/campaigns/{id}/<move>"
    }


def answer_to(words: str, outputs: dict[str, str]) -> str:
    [answer] = [answer for block, answer in outputs.items() if words in block]
    return answer


def checks_missing_in_the_table(printed: str) -> set[str]:
    """Return the checks that `adloom doctor` prints and the page about monitoring does not explain."""
    first_cells = re.findall(r"^\| ([^`|]+) \|", MONITORING.read_text(encoding="utf-8"), re.MULTILINE)
    explained = {name for cell in first_cells for name in cell.split(", ")}
    checked = set(re.findall(r"^(?:ok|warn|fail) +(\w+(?: \w+)*)", printed, re.MULTILINE))
    assert len(checked) > 25
    return checked - explained


def guide_pages() -> list[Path]:
    return sorted((ROOT / "docs" / "guide").glob("*.md"))


def read(address: str) -> str:
    with urllib.request.urlopen(address) as answer:  # noqa: S310 - our own
        return answer.read().decode()


def metrics_at(address: str) -> set[str]:
    lines = read(address).splitlines()
    declared = {line.split()[2] for line in lines if line.startswith("# TYPE adloom_")}
    return {name for name in declared if not name.endswith("_created")}
