"""The virtual loop: time without waiting, and an order that the seed decides."""

import asyncio
import time

import pytest

from simulation.loop import StuckError, run


async def order_of_ten() -> list[int]:
    order: list[int] = []

    async def step(number: int) -> None:
        await asyncio.sleep(0)
        order.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(step(number))
    return order


def test_a_week_passes_at_once() -> None:
    async def sleep_a_week() -> float:
        await asyncio.sleep(7 * 86_400)
        return asyncio.get_running_loop().time()

    before = time.monotonic()

    assert run(1, sleep_a_week()) == pytest.approx(7 * 86_400)
    assert time.monotonic() - before < 60


def test_the_same_seed_gives_the_same_order_and_others_give_others() -> None:
    orders = [tuple(run(seed, order_of_ten())) for seed in range(10)]

    assert orders == [tuple(run(seed, order_of_ten())) for seed in range(10)]
    assert len(set(orders)) == 10
    assert all(sorted(order) == list(range(10)) for order in orders)


def test_timeouts_happen_in_virtual_time() -> None:
    async def give_up() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(1, give_up()) == pytest.approx(30)


def test_waiting_for_what_never_comes_is_told() -> None:
    async def wait_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(StuckError):
        run(1, wait_for_ever())
