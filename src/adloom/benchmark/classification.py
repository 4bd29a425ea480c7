"""Measures the embedded classifier: accuracy by language, calibration error, time and memory.

The texts were written for this, by people who had not seen the seed phrases; nothing is fitted on them.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from adloom.pages.classify.protocol import PageContent
from adloom.runtime.process.tuning import use_one_thread

use_one_thread()

if TYPE_CHECKING:
    from adloom.pages.classify.embedded.classifier import EmbeddedClassifier

BINS: Final = 10
GOALS: Final = "goals: tier 2 given the root ≥ .60, calibration error ≤ .12, ≤ 20 ms a page, ≤ 200 MB"


class LabelledPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of which people have said what it is about."""

    language: str
    title: str
    text: str
    root: str
    tier2: str | None = None
    second_root: str | None = None

    def build_page(self) -> PageContent:
        return PageContent(title=self.title, text=self.text, language=self.language)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What the classifier said of one page; `ranked` are the roots, the likeliest first."""

    label: LabelledPage
    ranked: tuple[str, ...]
    confidence: float
    node: str | None
    milliseconds: float


class ClassificationFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy of a group of pages."""

    group: str
    pages: int
    top1: float
    top3: float
    tier2: float
    calibration_error: float
    milliseconds: float


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m adloom.benchmark.classification", description=__doc__)
    parser.add_argument("--texts", type=Path, help="a file of your own, one JSON object a line")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    labels = read_labels(options.texts)
    from adloom.pages.classify.embedded.classifier import load_embedded_classifier  # noqa: PLC0415 - NumPy

    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        # In a process of their own, so that the memory measured is that of a start with kept vectors.
        classifier = load_embedded_classifier(Path(folder))
        seconds = time.perf_counter() - began
    outcomes = measure(classifier, labels)
    rows = [
        summarize("all", outcomes),
        *(
            summarize(language, [one for one in outcomes if one.label.language == language])
            for language in sorted({label.language for label in labels})
        ),
    ]
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if options.json:
        sys.stdout.write(msgspec.json.encode({"figures": rows, "megabytes": megabytes}).decode() + "\n")
        return
    sys.stdout.write(render(rows))
    sys.stdout.write(
        f"\n{classifier.name} {classifier.version}: {megabytes:.0f} MB at most, seed vectors in {seconds:.1f} s once\n{GOALS}\n"
    )


def read_labels(path: Path | None) -> list[LabelledPage]:
    """Read labelled pages, those of the package if no file is named."""
    source = path or resources.files("adloom.benchmark").joinpath("data", "classification.jsonl")
    decode = msgspec.json.Decoder(LabelledPage).decode
    return [decode(line) for line in source.read_text(encoding="utf-8").splitlines() if line.strip()]


def measure(
    classifier: "EmbeddedClassifier",
    labels: Iterable[LabelledPage],
    clock: Callable[[], float] = time.process_time,
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for label in labels:
        page = label.build_page()
        began = clock()
        classifier.classify_now(page)
        milliseconds = (clock() - began) * 1000
        ranked = classifier.rank_roots(page)
        nodes = classifier.rank_nodes(page, label.root)
        outcomes.append(
            Outcome(
                label=label,
                ranked=tuple(root.id for root in ranked),
                confidence=ranked[0].confidence,
                node=nodes[0].id if nodes else None,
                milliseconds=milliseconds,
            )
        )
    return outcomes


def summarize(group: str, outcomes: Sequence[Outcome]) -> ClassificationFigures:
    """Summarise a group; of a page that is about two roots, either is right."""
    with_node = [one for one in outcomes if one.label.tier2 is not None]
    times = sorted(one.milliseconds for one in outcomes)
    return ClassificationFigures(
        group=group,
        pages=len(outcomes),
        top1=_compute_share(_is_right(one, 1) for one in outcomes),
        top3=_compute_share(_is_right(one, 3) for one in outcomes),
        tier2=_compute_share(one.node == one.label.tier2 for one in with_node),
        calibration_error=measure_calibration_error(
            [(one.confidence, _is_right(one, 1)) for one in outcomes]
        ),
        milliseconds=times[len(times) // 2],
    )


def measure_calibration_error(answers: Sequence[tuple[float, bool]]) -> float:
    """Return the expected calibration error: how far confidence is from accuracy, over ten bins."""
    error = 0.0
    for number in range(BINS):
        within = [one for one in answers if number <= one[0] * BINS < number + 1]
        if within:
            confidence = sum(one[0] for one in within) / len(within)
            error += abs(confidence - _compute_share(one[1] for one in within)) * len(within) / len(answers)
    return error


def render(rows: Sequence[ClassificationFigures]) -> str:
    lines = [
        "| texts | pages | top 1 | top 3 | tier 2 given the root | calibration error | CPU ms a page |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.group} | {row.pages} | {row.top1:.3f} | {row.top3:.3f} | {row.tier2:.3f}"
        f" | {row.calibration_error:.3f} | {row.milliseconds:.1f} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _is_right(outcome: Outcome, count: int) -> bool:
    wanted = {outcome.label.root, outcome.label.second_root}
    return any(root in wanted for root in outcome.ranked[:count])


def _compute_share(claims: Iterable[bool]) -> float:
    listed = list(claims)
    return sum(listed) / len(listed) if listed else 0.0


if __name__ == "__main__":
    main(sys.argv[1:])
