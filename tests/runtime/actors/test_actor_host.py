"""The actor host: order, durability before visibility, and isolated failures."""

import asyncio

import pytest

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.host import NotHostedError
from adloom.runtime.actors.mailboxes import Mailboxes, MailboxFullError
from adloom.runtime.actors.runner import TELLS_MAX
from tests.support.actors import Add, Count, HostSystem, Row, Tally, a_tally, on_virtual_time


@on_virtual_time
async def test_messages_are_processed_one_at_a_time_in_order_of_arrival() -> None:
    system = HostSystem(batch_max=3)
    async with system.running() as host:
        for amount in range(1, 10):
            host.tell(a_tally(), Add(amount=amount))

        await system.ask(Add(amount=10))

        assert system.states.tally() == Tally("a", 55, received=tuple(range(1, 11)))


@on_virtual_time
async def test_a_state_is_durable_before_its_reply_is_visible() -> None:
    system = HostSystem()
    async with system.running():
        assert await system.ask(Add(amount=3)) == 3

        assert system.states.tally() == Tally("a", 3, received=(3,))


@on_virtual_time
async def test_all_states_and_records_of_a_batch_are_stored_in_one_transaction() -> None:
    system = HostSystem()
    async with system.running() as host:
        for key in "abc":
            host.tell(a_tally(key), Add(records=(1, 2)))
        await system.ask(Add(), "d")

        assert system.states.commits == [[a_tally(key) for key in "abcd"]]
        assert system.states.records == [Row(key, number) for key in "abc" for number in (1, 2)]


@on_virtual_time
async def test_a_state_without_persist_is_visible_in_the_next_answer_but_not_stored() -> None:
    system = HostSystem()
    async with system.running():
        assert await system.ask(Add(is_kept=False)) == 1
        assert system.states.commits == []

        assert await system.ask(Add()) == 2

        assert len(system.states.commits) == 1


@on_virtual_time
async def test_messages_are_published_after_the_state_is_durable() -> None:
    system = HostSystem()
    async with system.running():
        await system.ask(Add(publishes="spend"))
        await asyncio.sleep(1)

        assert system.listeners.received == [("spend", Count(1))]


@pytest.mark.parametrize("failure", [UnavailableError("Away."), TimeoutError(), TypeError("no such thing")])
def test_a_failed_publish_loses_only_its_own_messages(failure: Exception) -> None:
    @on_virtual_time
    async def test() -> None:
        system = HostSystem()
        system.listeners.failure = failure
        async with system.running() as host:
            assert await system.ask(Add(publishes="spend")) == 1

            assert await system.ask(Add()) == 2
            assert host.counts.unpublished == 1
            assert host.counts.failed == 0

    test()


@on_virtual_time
async def test_other_tasks_run_between_batches_without_io() -> None:
    system = HostSystem(batch_max=1)
    async with system.running() as host:
        await system.ask(Add())
        for _ in range(100):
            host.tell(a_tally(), Add(is_kept=False))

        waits: list[int] = []
        while host.waiting:
            await asyncio.sleep(0)
            waits.append(host.waiting)

        assert len(set(waits)) > 10


# ---------------------------------------------------------------- messages between actors


@on_virtual_time
async def test_messages_between_actors_in_memory_are_stored_in_the_same_batch() -> None:
    system = HostSystem()
    async with system.running():
        await system.ask(Add(), "b")

        await system.ask(Add(messages=((a_tally("b"), Add(amount=5)),)), "a")

        assert system.states.commits == [[a_tally("b")], [a_tally("a"), a_tally("b")]]


@on_virtual_time
async def test_an_actor_not_in_memory_gets_a_message_after_the_senders_state_is_durable() -> None:
    system = HostSystem()
    async with system.running():
        await system.ask(Add(messages=((a_tally("b"), Add(amount=5)),)), "a")
        await asyncio.sleep(1)

        assert system.states.commits == [[a_tally("a")], [a_tally("b")]]


@on_virtual_time
async def test_an_actor_not_in_memory_gets_no_message_if_the_senders_state_was_not_stored() -> None:
    system = HostSystem()
    system.states.refused = {Row("a", 1)}
    async with system.running():
        with pytest.raises(UnavailableError):
            await system.ask(Add(records=(1,), messages=((a_tally("b"), Add(amount=5)),)), "a")
        await asyncio.sleep(1)

        assert system.states.tally("b") is None


@on_virtual_time
async def test_actors_that_message_each_other_forever_do_not_block_others() -> None:
    system = HostSystem()
    message = Add(is_kept=False)
    for _ in range(TELLS_MAX + 10):
        message = Add(is_kept=False, messages=((a_tally(), message),))
    async with system.running() as host:
        host.tell(a_tally(), message)

        assert await system.ask(Add(), "b") == 1
        await asyncio.sleep(1)

        assert host.counts.steps == TELLS_MAX + 12
        assert host.counts.batches == 2


@on_virtual_time
async def test_a_message_to_an_unknown_kind_is_refused() -> None:
    system = HostSystem()
    unknown = Address("unknown", "a")
    async with system.running() as host:
        assert await system.ask(Add(messages=((unknown, Add()),))) == 1

        assert not host.tell(unknown, Add())
        assert host.counts.refused == 2


# ---------------------------------------------------------------- failures


@on_virtual_time
async def test_a_failing_step_does_not_affect_other_messages() -> None:
    system = HostSystem()
    async with system.running() as host:
        before, bad = host.send_durably(a_tally(), Add()), host.send_durably(a_tally(), Add(fails=True))
        after, other = host.send_durably(a_tally(), Add()), host.send_durably(a_tally("b"), Add())

        await asyncio.wait([before, bad, after, other])

        assert isinstance(bad.exception(), UnavailableError)
        assert [one.exception() for one in (before, after, other)] == [None] * 3
        assert system.states.tally() == Tally("a", 2, received=(1, 1))
        assert host.counts.failed == 1


@on_virtual_time
async def test_a_rejected_record_fails_only_its_own_message() -> None:
    system = HostSystem()
    system.states.refused = {Row("k3", 1), Row("k7", 1)}
    keys = [f"k{number}" for number in range(20)]
    async with system.running() as host:
        futures = {key: host.send_durably(a_tally(key), Add(records=(1,))) for key in keys}

        await asyncio.wait(futures.values())

        assert {key for key, future in futures.items() if future.exception()} == {"k3", "k7"}
        assert {address.key for address in system.states.states} == {*keys} - {"k3", "k7"}
        assert host.counts.failed == 2


@on_virtual_time
async def test_an_unreadable_state_fails_only_its_own_actor() -> None:
    system = HostSystem()
    system.states.keep(Tally("a"), format_number=9)
    async with system.running() as host:
        unreadable, other = host.send_durably(a_tally(), Add()), host.send_durably(a_tally("b"), Add())

        await asyncio.wait([unreadable, other])

        assert isinstance(unreadable.exception(), UnavailableError)
        assert other.exception() is None


@on_virtual_time
async def test_senders_get_errors_while_the_store_is_away() -> None:
    system = HostSystem()
    async with system.running():
        await system.ask(Add())
        system.states.is_away = True
        for key in "ab":
            with pytest.raises(UnavailableError):
                await system.ask(Add(), key)

        system.states.is_away = False

        assert await system.ask(Add()) == 2


@on_virtual_time
async def test_a_state_is_loaded_again_after_an_unconfirmed_commit() -> None:
    system = HostSystem()
    async with system.running():
        system.states.is_commit_answer_lost = True
        with pytest.raises(UnavailableError):
            await system.ask(Add())
        system.states.is_commit_answer_lost = False

        assert await system.ask(Add()) == 2  # The first was stored after all.


@on_virtual_time
async def test_futures_of_earlier_messages_fail_when_the_state_is_dropped() -> None:
    system = HostSystem()
    async with system.running() as host:
        earlier = host.send_durably(a_tally(), Add(is_kept=False))
        await asyncio.sleep(1)
        assert not earlier.done()
        system.states.is_away = True

        with pytest.raises(UnavailableError):
            await system.ask(Add())

        assert isinstance(earlier.exception(), UnavailableError)
        system.states.is_away = False
        assert await system.ask(Add()) == 1


@on_virtual_time
async def test_a_host_fenced_out_of_one_actor_drops_all_of_them() -> None:
    system = HostSystem()
    async with system.running() as host:
        await system.ask(Add(), "a")
        await system.ask(Add(is_kept=False), "b")
        system.states.keep(Tally("a", 10))
        system.states.keep(Tally("b", 20))

        with pytest.raises(UnavailableError):
            await system.ask(Add(), "a")

        assert host.counts.fenced == 1
        assert await system.ask(Add(), "b") == 21
        assert await system.ask(Add(), "a") == 11


# ---------------------------------------------------------------- first messages


@on_virtual_time
async def test_first_messages_come_before_all_others() -> None:
    system = HostSystem()
    system.catalog.introductions = {a_tally(): [Add(amount=100), Add(amount=200)]}
    async with system.running() as host:
        host.tell(a_tally(), Add(amount=1))
        await system.ask(Add(amount=2))

        assert system.states.tally() == Tally("a", 303, received=(100, 200, 1, 2))


@on_virtual_time
async def test_an_actor_refuses_messages_until_its_first_messages_are_loaded() -> None:
    system = HostSystem()
    system.catalog.introductions = {a_tally(): [Add(amount=100)]}
    system.catalog.is_away = True
    async with system.running() as host:
        with pytest.raises(UnavailableError):
            await system.ask(Add())
        assert host.active == 0
        system.catalog.is_away = False

        assert await system.ask(Add()) == 101


@on_virtual_time
async def test_first_messages_that_fail_stop_only_their_own_actor() -> None:
    system = HostSystem()
    system.catalog.introductions = {a_tally(): [Add(fails=True)], a_tally("b"): [Add(amount=100)]}
    async with system.running() as host:
        futures = [host.send_durably(a_tally(key), Add()) for key in "abc"]

        await asyncio.wait(futures)

        assert [future.exception() is None for future in futures] == [False, True, True]
        assert system.states.tally("b") == Tally("b", 101, received=(100, 1))


# ---------------------------------------------------------------- bounds, asks, stopping


@on_virtual_time
async def test_a_message_to_a_full_mailbox_is_refused_to_its_sender() -> None:
    system = HostSystem(mailboxes=Mailboxes(mailbox_max=2, messages_max=3))
    async with system.running() as host:
        assert host.tell(a_tally("a"), Add())
        assert host.tell(a_tally("a"), Add())
        assert not host.tell(a_tally("a"), Add())
        assert host.tell(a_tally("b"), Add())
        with pytest.raises(MailboxFullError):
            host.send_durably(a_tally("c"), Add())
        with pytest.raises(MailboxFullError):
            await host.ask(a_tally("c"), Add(), seconds_max=1)
        assert host.counts.refused == 3

        await asyncio.sleep(1)

        assert host.waiting == 0
        assert host.tell(a_tally("a"), Add())


@on_virtual_time
async def test_an_ask_times_out() -> None:
    system = HostSystem()
    async with system.running() as host:
        with pytest.raises(TimeoutError):
            await host.ask(a_tally(), Add(), seconds_max=0.0001)

        assert await system.ask(Add()) == 2  # The message was processed, and its late answer ignored.


@on_virtual_time
async def test_an_ask_without_a_reply_fails_immediately() -> None:
    system = HostSystem()
    async with system.running() as host:
        with pytest.raises(UnavailableError):
            await host.ask(a_tally(), Add(replies=False), seconds_max=60)

        assert asyncio.get_running_loop().time() < 1


@on_virtual_time
async def test_a_future_is_done_only_when_its_message_is_durable() -> None:
    system = HostSystem()
    async with system.running() as host:
        first = host.send_durably(a_tally(), Add(is_kept=False))
        second = host.send_durably(a_tally(), Add(is_kept=False))
        await asyncio.sleep(10)
        assert not first.done()
        assert not second.done()

        await host.send_durably(a_tally(), Add())

        assert first.done()
        assert second.done()


@on_virtual_time
async def test_a_stopping_host_stores_accepted_messages_and_refuses_new_ones() -> None:
    system = HostSystem(batch_max=2)
    async with system.running() as host:
        future = host.send_durably(a_tally("z"), Add(is_kept=False))
        await asyncio.sleep(1)
        for key in "abcde":
            host.tell(a_tally(key), Add(is_kept=False))

    assert future.exception() is None
    kept = [system.states.tally(key) for key in "abcdez"]
    assert all(one is not None and one.count == 1 for one in kept)
    assert host.active == 0
    with pytest.raises(NotHostedError):
        host.send_durably(a_tally(), Add())


@on_virtual_time
async def test_callers_of_a_cancelled_host_get_an_error() -> None:
    system = HostSystem()
    stop = asyncio.Event()
    running = asyncio.create_task(system.host.run(stop))
    await system.opened()
    dirty = system.host.send_durably(a_tally("a"), Add(is_kept=False))
    await asyncio.sleep(1)
    under_way = system.host.send_durably(a_tally("b"), Add())
    await asyncio.sleep(0.0015)  # During its commit.
    waiting = system.host.send_durably(a_tally("c"), Add())

    running.cancel()
    await asyncio.wait([running])

    assert all(isinstance(one.exception(), UnavailableError) for one in (dirty, under_way, waiting))


@on_virtual_time
async def test_a_stopped_host_can_run_again() -> None:
    system = HostSystem()
    async with system.running():
        await system.ask(Add())
    system.states.keep(Tally("a", 10))

    async with system.running():
        assert await system.ask(Add()) == 11


@on_virtual_time
async def test_a_host_stops_within_seconds_while_the_store_is_away() -> None:
    system = HostSystem()
    async with system.running() as host:
        await system.ask(Add(is_kept=False))
        system.states.is_away = True
        host.tell(a_tally("b"), Add())

    assert asyncio.get_running_loop().time() < 3
