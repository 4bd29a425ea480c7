"""The operator's own weights of `fleet`: a worker decides with them if they are whole, else with those of the package."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
import structlog

from adloom.bidding import network
from adloom.bidding.shipped import read_shipped
from adloom.bidding.weights import decode_weights, encode_weights
from adloom.bidding.window import BidStrategy
from adloom.budgets.bid_model import BidsDecided
from adloom.budgets.bids.decider import BidDecider
from adloom.budgets.bids.nets import SHIPPED, FleetWeights, cache_nets, read_fleet_weights
from adloom.ops.checks.finding import FindingState
from adloom.ops.checks.processes import judge_weights
from adloom.runtime.actors.actor import Address
from adloom.runtime.telemetry.heartbeat import HeartbeatReader, ProcessHeartbeat
from adloom.runtime.valkey import Valkey
from tests.app.test_worker_jobs import a_worker
from tests.budgets.test_campaign_bids import FixedCounts, a_request


def low_weights(**card: object) -> bytes:
    """Whole weights whose net says next to nothing but «bid low»."""
    shipped, arrays = decode_weights(read_shipped("fleet") or b"", "fleet", network.SHAPES)
    last = list(arrays)[-1]
    return encode_weights(msgspec.structs.replace(shipped, **card), {**arrays, last: arrays[last] - 9.0})


async def decide(weights: FleetWeights) -> BidsDecided:
    told: list[BidsDecided] = []

    def tell(address: Address, message: msgspec.Struct) -> bool:
        del address
        assert isinstance(message, BidsDecided)
        told.append(message)
        return True

    decider = BidDecider(FixedCounts(), load_nets=cache_nets(weights))
    decider.tell = tell
    await decider.answer([a_request()])
    return told[0]


async def test_the_decider_uses_them(tmp_path: Path) -> None:
    (tmp_path / "fleet.weights").write_bytes(low_weights())

    own = await decide(read_fleet_weights(tmp_path / "fleet.weights"))
    shipped = await decide(SHIPPED)

    assert (own.decision.reason, shipped.decision.fallback) == ("fleet", None)
    assert own.decision.multiplier == pytest.approx(0.15)
    assert shipped.decision.multiplier > 0.3
    assert own.shadows[BidStrategy.DQN] == shipped.shadows[BidStrategy.DQN]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "no weights file"),
        (low_weights()[:-4], "not those of their hash"),
        (low_weights(kind="dqn"), "weights of 'dqn'"),
        (low_weights(steps=0), "never trained"),
        (read_shipped("dqn"), "weights of 'dqn'"),
    ],
)
async def test_others_are_not_used_and_the_log_says_why_once(
    tmp_path: Path, data: bytes | None, reason: str
) -> None:
    path = tmp_path / "fleet.weights"
    if data is not None:
        path.write_bytes(data)

    with structlog.testing.capture_logs() as lines:
        weights = read_fleet_weights(path)
    decided = await decide(weights)

    assert [line["event"] for line in lines] == ["own_weights_not_used"]
    assert str(path) in lines[0]["reason"]
    assert reason in lines[0]["reason"]
    assert decided == await decide(SHIPPED)


def test_weights_of_another_form_or_with_what_is_no_number_are_not_used(tmp_path: Path) -> None:
    card, arrays = decode_weights(read_shipped("fleet") or b"", "fleet", network.SHAPES)
    last = list(arrays)[-1]
    short = {name: array for name, array in arrays.items() if name != last}
    path = tmp_path / "fleet.weights"

    path.write_bytes(encode_weights(card, short))
    assert "of another form" in str(read_fleet_weights(path).problem)
    path.write_bytes(encode_weights(card, {**arrays, last: arrays[last] * float("nan")}))
    assert "not all are numbers" in str(read_fleet_weights(path).problem)
    assert read_fleet_weights(None) is SHIPPED


@pytest.mark.process
async def test_a_worker_with_damaged_weights_runs_and_says_so(
    tmp_path: Path, database_url: str, redis_url: str, valkey: Valkey
) -> None:
    path = tmp_path / "fleet.weights"
    path.write_bytes(low_weights()[:-4])
    found: list[ProcessHeartbeat] = []
    variables = {"ADLOOM_FLEET_WEIGHTS": str(path), "ADLOOM_LOG_FORMAT": "json"}
    with a_worker(database_url, redis_url, **variables) as process:
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while not found:
                await asyncio.sleep(0.1)
                found = list(await HeartbeatReader(valkey).list_processes(now=datetime.now(UTC)))
        process.kill()
        lines = await asyncio.to_thread(process.stderr.readlines)

    finding = judge_weights(found[0])
    assert finding.state is FindingState.WARN
    assert f"{path}: weights: not those of their hash" in finding.detail
    assert sum(b"own_weights_not_used" in line for line in lines) == 1
