"""What `adloom learn` does: reads recorded days, trains with a progress bar, writes weights, card and report."""

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from adloom.app.progress import show_progress
from adloom.bidding import dqn, network
from adloom.bidding.network import Array, FleetNet
from adloom.bidding.shipped import load_nets
from adloom.bidding.training.batch import make_plain_seat_days
from adloom.bidding.training.dqn import measure_dqn, train_dqn
from adloom.bidding.training.fleet import TrainingPlan, TrainingStep, measure_fleet, train_fleet
from adloom.bidding.training.gradient import DayPlayer
from adloom.bidding.training.market_days import WINDOWS, MarketDays, build_market_days
from adloom.bidding.training.replay import replay
from adloom.bidding.training.report import build_report
from adloom.bidding.weights import WeightsCard, encode_weights, read_card
from adloom.bidding.window import BidRules, BidStrategy
from adloom.cli.options import LearnCommandError
from adloom.core.clock import SystemClock

ARCHIVE = "tables.npz"
NEEDED = (
    *("days", "train_days", "tuning_days", "multipliers", "opportunities", "budget", "target", "best_score"),
    *("value", "cost", "won", "shown"),
)
SHOWN_DAYS = 5  # Seat-days whose multipliers the report draws.
MEASURED_EVERY = 20


class Archive(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded days, those to train on and those held out."""

    name: str
    train: MarketDays
    held_out: MarketDays
    train_days: tuple[int, ...]
    held_out_days: tuple[int, ...]


def read_archive(folder: Path | None) -> Archive:
    if folder is None:
        raise LearnCommandError("Say where the recorded days are: --data DIR, or --from-ledger 30d.")
    path = folder / ARCHIVE
    if not path.is_file():
        raise LearnCommandError(f"{path} is not there: --data names a folder with recorded days, {ARCHIVE}.")
    try:
        with np.load(path, allow_pickle=False) as found:
            tables: dict[str, npt.NDArray[Any]] = {name: found[name] for name in NEEDED}
    except (KeyError, ValueError, OSError) as error:
        raise LearnCommandError(f"{path} cannot be read: {error}.") from error
    if tables["value"].shape[2] != WINDOWS or not len(tables["train_days"]) or not len(tables["tuning_days"]):
        raise LearnCommandError(
            f"{path} needs days to train on, days to hold out, and {WINDOWS} windows a day."
        )
    return build_archive(path.name, tables)


def build_archive(name: str, tables: Mapping[str, npt.NDArray[Any]]) -> Archive:
    numbers = {int(day): index for index, day in enumerate(tables["days"])}
    train = np.array([numbers[int(day)] for day in tables["train_days"]], dtype=np.int64)
    held_out = np.array([numbers[int(day)] for day in tables["tuning_days"]], dtype=np.int64)
    return Archive(
        name=name,
        train=build_market_days(tables, train, train),
        held_out=build_market_days(tables, held_out, train),
        train_days=tuple(int(day) for day in tables["train_days"]),
        held_out_days=tuple(int(day) for day in tables["tuning_days"]),
    )


def learn_fleet(archive: Archive, *, seed: int, steps: int, out: Path) -> None:
    console = Console()
    shares, held = list[float](), list[float]()
    with show_progress("fleet", steps, unit="steps") as work:

        def on_step(step: TrainingStep, net: FleetNet) -> None:
            shares.append(step.share)
            if step.number % MEASURED_EVERY == 0:
                held.append(measure_fleet(archive.held_out, net, is_guarded=False).share)
            work.advance(note=f"held out {held[-1]:.3f}")

        net = train_fleet(archive.train, TrainingPlan(steps=steps, seed=seed), on_step=on_step)
    card = WeightsCard(
        kind="fleet",
        data=archive.name,
        train_days=archive.train_days,
        held_out_days=archive.held_out_days,
        seed=seed,
        steps=steps,
        scores=score_fleet(archive.held_out, net),
        trained_on=SystemClock().now().date().isoformat(),
    )
    arrays = {name: getattr(net, name) for name in network.SHAPES}
    curves = {"batch (of what budgets could buy)": shares, "held out (of the best constant)": held}
    write_result(console, out, card, arrays, curves, draw_days(archive.held_out, net))


def learn_dqn(archive: Archive, *, seed: int, episodes: int, out: Path) -> None:
    console = Console()
    with show_progress("dqn", episodes, unit="episodes") as work:

        def on_episode(share: float) -> None:
            work.advance(note=f"train {share:.3f}")

        net, curve = train_dqn(archive.train, episodes=episodes, seed=seed, on_episode=on_episode)
    share, over = measure_dqn(archive.held_out, net)
    card = WeightsCard(
        kind="dqn",
        data=archive.name,
        train_days=archive.train_days,
        held_out_days=archive.held_out_days,
        seed=seed,
        steps=episodes,
        scores={"with guard": round(share, 4), "with guard, over target": round(over, 4)},
        trained_on=SystemClock().now().date().isoformat(),
    )
    arrays = {name: getattr(net, name) for name in dqn.SHAPES}
    write_result(console, out, card, arrays, {"train days, with guard": curve}, {})


def score_fleet(days: MarketDays, net: FleetNet) -> dict[str, float]:
    without, guarded = (measure_fleet(days, net, is_guarded=is_guarded) for is_guarded in (False, True))
    return {
        "without guard": round(without.share, 4),
        "without guard, over target": round(without.over, 4),
        "with guard": round(guarded.share, 4),
        "with guard, over target": round(guarded.over, 4),
    }


def draw_days(days: MarketDays, net: FleetNet) -> dict[str, list[float]]:
    """Play some seat-days, and return their multipliers for the report."""
    rows = make_plain_seat_days(days)
    logs = DayPlayer(days, rows, is_guarded=True).play(net).log_m
    chosen = np.linspace(0, len(rows) - 1, SHOWN_DAYS).astype(int)
    return {f"seat-day {index}": np.exp(logs[:, index]).tolist() for index in chosen}


def write_result(  # noqa: PLR0913, PLR0917 - all that was learned
    console: Console,
    out: Path,
    card: WeightsCard,
    arrays: Mapping[str, Array],
    curves: Mapping[str, list[float]],
    days: Mapping[str, list[float]],
) -> None:
    data = encode_weights(card, arrays)
    signed = read_card(data)
    weights, report = out / f"{card.kind}.weights", out / f"{card.kind}.html"
    try:
        out.mkdir(parents=True, exist_ok=True)
        weights.write_bytes(data)
        report.write_text(build_report(signed, curves, days), encoding="utf-8")
    except OSError as error:
        raise LearnCommandError(f"{out} cannot be written: {error.strerror}.") from error
    table = Table("on the held-out days", "share", box=None, pad_edge=False)
    for name, score in card.scores.items():
        table.add_row(name, f"{score:.4f}")
    console.print(table)
    console.print(
        f"{weights} ({len(data):,} bytes, sha256 {signed.sha256[:16]}…) and {report}", highlight=False
    )


def print_scores(archive: Archive, *, price: float) -> None:
    """Print what every strategy reaches; a score is a share of the best constant multiplier's at recorded prices."""
    days, nets = archive.held_out, load_nets()
    rows = make_plain_seat_days(days, price=price)
    table = Table(
        "strategy", "guard", "score", "over target", "spent", "microseconds", box=None, pad_edge=False
    )
    plans = [(BidStrategy.FIXED, True), (BidStrategy.PACER, True)]
    plans += [
        (strategy, has_guard)
        for strategy in (BidStrategy.DQN, BidStrategy.FLEET)
        for has_guard in (True, False)
    ]
    for strategy, has_guard in plans:
        began = perf_counter()
        found = replay(days, strategy, nets, rules=BidRules(has_guard=has_guard), rows=rows)
        each = (perf_counter() - began) / (len(rows) * WINDOWS)
        table.add_row(
            strategy,
            "on" if has_guard else "off",
            f"{found.score.sum() / days.best_score.sum():.3f}",
            f"{found.over:.3f}",
            f"{found.spent:.3f}",
            f"{1e6 * each:.0f}",
        )
    Console().print(table)
