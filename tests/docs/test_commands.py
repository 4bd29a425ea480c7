"""Every command of the documentation is run against one real `adloom up`."""

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.docs.pages import MONITORING, runnable_blocks
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

    served = json.loads(answer_to("sleep 1\ncurl -s -w '\\n' $DELIVERY/banners/serve", outputs))
    assert [banner["headline"] for banner in served["banners"]] == ["Leaves are free"]
    page = json.loads(answer_to('"placements": ["home-aside", "nowhere"]', outputs))["results"]
    assert page["nowhere"]["errorCode"] == "PLACEMENT_NOT_FOUND"
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
    assert "Migrations" in answer_to("adloom doctor\n", outputs)
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


def test_every_metric_is_in_the_table(product: Product) -> None:
    table = MONITORING.read_text(encoding="utf-8")

    names = {
        name
        for port in product.installation.metrics_ports.values()
        for name in metrics_at(f"http://127.0.0.1:{port}/metrics")
    }

    assert len(names) > 10
    assert {name for name in names if f"`{name}" not in table} == set()


def answer_to(words: str, outputs: dict[str, str]) -> str:
    [answer] = [answer for block, answer in outputs.items() if words in block]
    return answer


def metrics_at(address: str) -> set[str]:
    with urllib.request.urlopen(address) as answer:  # noqa: S310 - our own
        lines = answer.read().decode().splitlines()
    declared = {line.split()[2] for line in lines if line.startswith("# TYPE adloom_")}
    return {name for name in declared if not name.endswith("_created")}
