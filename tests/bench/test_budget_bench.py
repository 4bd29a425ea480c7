import pytest

from bench.budgets.charges import measure_charges, measure_leasing


def say_nothing(_said: str) -> None:
    pass


@pytest.mark.process
async def test_charging_is_measured_on_a_real_worker() -> None:
    counted, charged = await measure_charges(events=200, campaigns=6, say=say_nothing)

    assert charged.log_bytes >= counted.log_bytes > 0


@pytest.mark.process
async def test_leasing_is_measured_in_a_real_worker() -> None:
    cost = await measure_leasing(campaigns=50, say=say_nothing)

    assert cost.bytes_after >= cost.bytes_before > 0
