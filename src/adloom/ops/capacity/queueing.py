"""Queues: how long work waits for one of several servers (M/M/c: arrivals by chance, exponential service times).

Requests take less different times than exponential ones, so the waits here are upper bounds.
"""
# pure

import math
from collections.abc import Callable
from typing import Final

import msgspec

WAIT_SHARE: Final = 0.99  # So many arrivals wait no longer than what is planned for.
SERVERS_MAX: Final = 10_000_000


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """Arrivals a second at a queue of `servers`, each of which takes `service_seconds` for one on average."""

    arrivals: float
    service_seconds: float
    servers: int = 1

    @property
    def utilisation(self) -> float:
        return self.arrivals * self.service_seconds / self.servers


def find_waiting_share(queue: Queue) -> float:
    """Return the share of arrivals that wait at all (Erlang C); 1 if the queue only grows."""
    load = queue.arrivals * queue.service_seconds
    if load >= queue.servers:
        return 1.0
    blocked = 1.0  # Erlang B, by its recursion: no factorials that overflow.
    for number in range(1, queue.servers + 1):
        blocked = load * blocked / (number + load * blocked)
    return blocked / (1 - queue.utilisation * (1 - blocked))


def find_wait_seconds(queue: Queue) -> float:
    """Return the wait that 99 % of the arrivals do not exceed; infinite if the queue only grows."""
    if queue.utilisation >= 1:
        return math.inf
    waiting = find_waiting_share(queue)
    if waiting <= 1 - WAIT_SHARE:
        return 0.0
    leaving = (queue.servers - queue.arrivals * queue.service_seconds) / queue.service_seconds
    return math.log(waiting / (1 - WAIT_SHARE)) / leaving


def count_own_queues(
    arrivals: float, service_seconds: float, *, utilisation_max: float, wait_max: float
) -> int:
    """Return how many servers with a queue each are needed, such as processes that keep their connections."""

    def is_enough(number: int) -> bool:
        queue = Queue(arrivals=arrivals / number, service_seconds=service_seconds)
        return queue.utilisation <= utilisation_max and find_wait_seconds(queue) <= wait_max

    return _find_least(is_enough, arrivals * service_seconds / utilisation_max)


def count_shared_queue(
    arrivals: float, service_seconds: float, *, utilisation_max: float, wait_max: float
) -> int:
    """Return how many servers are needed that take their work from one queue."""

    def is_enough(number: int) -> bool:
        queue = Queue(arrivals=arrivals, service_seconds=service_seconds, servers=number)
        return queue.utilisation <= utilisation_max and find_wait_seconds(queue) <= wait_max

    return _find_least(is_enough, arrivals * service_seconds / utilisation_max)


def _find_least(is_enough: Callable[[int], bool], at_least: float) -> int:
    low = max(1, math.floor(at_least))  # Rounding: the next one is looked at too.
    high = low
    while not is_enough(high) and high < SERVERS_MAX:
        low, high = high + 1, high * 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
