"""The host of entities: order, durability before anything is seen, and failures that stay alone."""

import asyncio

import pytest

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address
from adloom.runtime.actors.host import NotHostedError
from adloom.runtime.actors.mailboxes import Mailboxes, MailboxFullError
from adloom.runtime.actors.runner import TELLS_MAX
from tests.support.actors import Add, Count, Row, Stage, Tally, a_tally, on_virtual_time


@on_virtual_time
async def test_messages_are_taken_one_at_a_time_in_the_order_in_which_they_came() -> None:
    stage = Stage(batch_max=3)
    async with stage.running() as host:
        for amount in range(1, 10):
            host.tell(a_tally(), Add(amount=amount))

        await stage.told(Add(amount=10))

        assert stage.states.tally() == Tally("a", 55, heard=tuple(range(1, 11)))


@on_virtual_time
async def test_a_state_is_durable_before_its_reply_is_visible() -> None:
    stage = Stage()
    async with stage.running():
        assert await stage.told(Add(amount=3)) == 3

        assert stage.states.tally() == Tally("a", 3, heard=(3,))


@on_virtual_time
async def test_all_states_and_records_of_a_batch_are_stored_in_one_transaction() -> None:
    stage = Stage()
    async with stage.running() as host:
        for key in "abc":
            host.tell(a_tally(key), Add(records=(1, 2)))
        await stage.told(Add(), "d")

        assert stage.states.commits == [[a_tally(key) for key in "abcd"]]
        assert stage.states.records == [Row(key, number) for key in "abc" for number in (1, 2)]


@on_virtual_time
async def test_a_state_without_persist_is_not_stored_yet_but_shows_in_the_next_answer() -> None:
    stage = Stage()
    async with stage.running():
        assert await stage.told(Add(is_kept=False)) == 1
        assert stage.states.commits == []

        assert await stage.told(Add()) == 2

        assert len(stage.states.commits) == 1


@on_virtual_time
async def test_messages_are_published_after_the_state_is_durable() -> None:
    stage = Stage()
    async with stage.running():
        await stage.told(Add(says="spend"))
        await asyncio.sleep(1)

        assert stage.listeners.heard == [("spend", Count(1))]


@pytest.mark.parametrize("failure", [UnavailableError("Away."), TimeoutError(), TypeError("no such thing")])
def test_a_failed_publish_loses_only_the_published_messages(failure: Exception) -> None:
    @on_virtual_time
    async def test() -> None:
        stage = Stage()
        stage.listeners.failure = failure
        async with stage.running() as host:
            assert await stage.told(Add(says="spend")) == 1

            assert await stage.told(Add()) == 2
            assert host.counts.unpublished == 1
            assert host.counts.failed == 0

    test()


@on_virtual_time
async def test_other_tasks_run_between_batches_without_io() -> None:
    stage = Stage(batch_max=1)
    async with stage.running() as host:
        await stage.told(Add())
        for _ in range(100):
            host.tell(a_tally(), Add(is_kept=False))

        waits: list[int] = []
        while host.waiting:
            await asyncio.sleep(0)
            waits.append(host.waiting)

        assert len(set(waits)) > 10


# ---------------------------------------------------------------- entities among themselves


@on_virtual_time
async def test_messages_between_actors_in_memory_are_stored_in_the_same_batch() -> None:
    stage = Stage()
    async with stage.running():
        await stage.told(Add(), "b")

        await stage.told(Add(tells=((a_tally("b"), Add(amount=5)),)), "a")

        assert stage.states.commits == [[a_tally("b")], [a_tally("a"), a_tally("b")]]


@on_virtual_time
async def test_an_actor_not_in_memory_gets_a_message_after_the_senders_state_is_durable() -> None:
    stage = Stage()
    async with stage.running():
        await stage.told(Add(tells=((a_tally("b"), Add(amount=5)),)), "a")
        await asyncio.sleep(1)

        assert stage.states.commits == [[a_tally("a")], [a_tally("b")]]


@on_virtual_time
async def test_an_actor_not_in_memory_gets_no_message_if_the_senders_state_was_not_stored() -> None:
    stage = Stage()
    stage.states.refused = {Row("a", 1)}
    async with stage.running():
        with pytest.raises(UnavailableError):
            await stage.told(Add(records=(1,), tells=((a_tally("b"), Add(amount=5)),)), "a")
        await asyncio.sleep(1)

        assert stage.states.tally("b") is None


@on_virtual_time
async def test_actors_that_message_each_other_forever_do_not_block_others() -> None:
    stage = Stage()
    talk = Add(is_kept=False)
    for _ in range(TELLS_MAX + 10):
        talk = Add(is_kept=False, tells=((a_tally(), talk),))
    async with stage.running() as host:
        host.tell(a_tally(), talk)

        assert await stage.told(Add(), "b") == 1
        await asyncio.sleep(1)

        assert host.counts.steps == TELLS_MAX + 12
        assert host.counts.batches == 2


@on_virtual_time
async def test_a_message_to_an_unknown_kind_is_refused() -> None:
    stage = Stage()
    nobody = Address("nobody", "a")
    async with stage.running() as host:
        assert await stage.told(Add(tells=((nobody, Add()),))) == 1

        assert not host.tell(nobody, Add())
        assert host.counts.refused == 2


# ---------------------------------------------------------------- failures


@on_virtual_time
async def test_a_step_that_fails_fails_alone() -> None:
    stage = Stage()
    async with stage.running() as host:
        before, bad = host.send_durably(a_tally(), Add()), host.send_durably(a_tally(), Add(fails=True))
        after, other = host.send_durably(a_tally(), Add()), host.send_durably(a_tally("b"), Add())

        await asyncio.wait([before, bad, after, other])

        assert isinstance(bad.exception(), UnavailableError)
        assert [one.exception() for one in (before, after, other)] == [None] * 3
        assert stage.states.tally() == Tally("a", 2, heard=(1, 1))
        assert host.counts.failed == 1


@on_virtual_time
async def test_a_result_that_can_never_be_stored_is_found_and_fails_alone() -> None:
    stage = Stage()
    stage.states.refused = {Row("k3", 1), Row("k7", 1)}
    keys = [f"k{number}" for number in range(20)]
    async with stage.running() as host:
        futures = {key: host.send_durably(a_tally(key), Add(records=(1,))) for key in keys}

        await asyncio.wait(futures.values())

        assert {key for key, future in futures.items() if future.exception()} == {"k3", "k7"}
        assert {address.key for address in stage.states.states} == {*keys} - {"k3", "k7"}
        assert host.counts.failed == 2


@on_virtual_time
async def test_a_state_that_cannot_be_read_fails_alone() -> None:
    stage = Stage()
    stage.states.keep(Tally("a"), format_number=9)
    async with stage.running() as host:
        unreadable, other = host.send_durably(a_tally(), Add()), host.send_durably(a_tally("b"), Add())

        await asyncio.wait([unreadable, other])

        assert isinstance(unreadable.exception(), UnavailableError)
        assert other.exception() is None


@on_virtual_time
async def test_while_the_store_is_away_senders_get_errors_and_no_state_is_invented() -> None:
    stage = Stage()
    async with stage.running():
        await stage.told(Add())
        stage.states.is_away = True
        for key in "ab":
            with pytest.raises(UnavailableError):
                await stage.told(Add(), key)

        stage.states.is_away = False

        assert await stage.told(Add()) == 2


@on_virtual_time
async def test_a_state_that_may_not_be_stored_is_loaded_again() -> None:
    stage = Stage()
    async with stage.running():
        stage.states.is_kept_unheard = True
        with pytest.raises(UnavailableError):
            await stage.told(Add())
        stage.states.is_kept_unheard = False

        assert await stage.told(Add()) == 2  # The first was kept after all.


@on_virtual_time
async def test_futures_of_earlier_messages_fail_when_the_state_is_dropped() -> None:
    stage = Stage()
    async with stage.running() as host:
        earlier = host.send_durably(a_tally(), Add(is_kept=False))
        await asyncio.sleep(1)
        assert not earlier.done()
        stage.states.is_away = True

        with pytest.raises(UnavailableError):
            await stage.told(Add())

        assert isinstance(earlier.exception(), UnavailableError)
        stage.states.is_away = False
        assert await stage.told(Add()) == 1


@on_virtual_time
async def test_a_host_fenced_out_of_one_actor_drops_all_of_them() -> None:
    stage = Stage()
    async with stage.running() as host:
        await stage.told(Add(), "a")
        await stage.told(Add(is_kept=False), "b")
        stage.states.keep(Tally("a", 10))
        stage.states.keep(Tally("b", 20))

        with pytest.raises(UnavailableError):
            await stage.told(Add(), "a")

        assert host.counts.fenced == 1
        assert await stage.told(Add(), "b") == 21
        assert await stage.told(Add(), "a") == 11


# ---------------------------------------------------------------- introductions


@on_virtual_time
async def test_an_introduction_comes_before_the_first_message() -> None:
    stage = Stage()
    stage.catalog.introductions = {a_tally(): [Add(amount=100), Add(amount=200)]}
    async with stage.running() as host:
        host.tell(a_tally(), Add(amount=1))
        await stage.told(Add(amount=2))

        assert stage.states.tally() == Tally("a", 303, heard=(100, 200, 1, 2))


@on_virtual_time
async def test_without_its_first_messages_an_actor_takes_no_other() -> None:
    stage = Stage()
    stage.catalog.introductions = {a_tally(): [Add(amount=100)]}
    stage.catalog.is_away = True
    async with stage.running() as host:
        with pytest.raises(UnavailableError):
            await stage.told(Add())
        assert host.active == 0
        stage.catalog.is_away = False

        assert await stage.told(Add()) == 101


@on_virtual_time
async def test_first_messages_that_fail_stop_only_their_own_actor() -> None:
    stage = Stage()
    stage.catalog.introductions = {a_tally(): [Add(fails=True)], a_tally("b"): [Add(amount=100)]}
    async with stage.running() as host:
        futures = [host.send_durably(a_tally(key), Add()) for key in "abc"]

        await asyncio.wait(futures)

        assert [future.exception() is None for future in futures] == [False, True, True]
        assert stage.states.tally("b") == Tally("b", 101, heard=(100, 1))


# ---------------------------------------------------------------- bounds, asks, stopping


@on_virtual_time
async def test_a_message_to_a_full_mailbox_is_refused_to_its_sender() -> None:
    stage = Stage(mailboxes=Mailboxes(mailbox_max=2, messages_max=3))
    async with stage.running() as host:
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
async def test_an_ask_ends_with_its_time() -> None:
    stage = Stage()
    async with stage.running() as host:
        with pytest.raises(TimeoutError):
            await host.ask(a_tally(), Add(), seconds_max=0.0001)

        assert await stage.told(Add()) == 2  # It was taken all the same, and nobody minds its late answer.


@on_virtual_time
async def test_an_ask_that_gets_no_answer_fails_at_once() -> None:
    stage = Stage()
    async with stage.running() as host:
        with pytest.raises(UnavailableError):
            await host.ask(a_tally(), Add(replies=False), seconds_max=60)

        assert asyncio.get_running_loop().time() < 1


@on_virtual_time
async def test_a_future_is_done_when_its_message_is_durable_and_not_before() -> None:
    stage = Stage()
    async with stage.running() as host:
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
    stage = Stage(batch_max=2)
    async with stage.running() as host:
        future = host.send_durably(a_tally("z"), Add(is_kept=False))
        await asyncio.sleep(1)
        for key in "abcde":
            host.tell(a_tally(key), Add(is_kept=False))

    assert future.exception() is None
    kept = [stage.states.tally(key) for key in "abcdez"]
    assert all(one is not None and one.count == 1 for one in kept)
    assert host.active == 0
    with pytest.raises(NotHostedError):
        host.send_durably(a_tally(), Add())


@on_virtual_time
async def test_callers_of_a_cancelled_host_get_an_error() -> None:
    stage = Stage()
    stop = asyncio.Event()
    running = asyncio.create_task(stage.host.run(stop))
    await stage.opened()
    dirty = stage.host.send_durably(a_tally("a"), Add(is_kept=False))
    await asyncio.sleep(1)
    under_way = stage.host.send_durably(a_tally("b"), Add())
    await asyncio.sleep(0.0015)  # In the midst of its commit.
    waiting = stage.host.send_durably(a_tally("c"), Add())

    running.cancel()
    await asyncio.wait([running])

    assert all(isinstance(one.exception(), UnavailableError) for one in (dirty, under_way, waiting))


@on_virtual_time
async def test_a_stopped_host_can_run_again() -> None:
    stage = Stage()
    async with stage.running():
        await stage.told(Add())
    stage.states.keep(Tally("a", 10))

    async with stage.running():
        assert await stage.told(Add()) == 11


@on_virtual_time
async def test_a_stop_ends_in_time_while_the_store_is_away() -> None:
    stage = Stage()
    async with stage.running() as host:
        await stage.told(Add(is_kept=False))
        stage.states.is_away = True
        host.tell(a_tally("b"), Add())

    assert asyncio.get_running_loop().time() < 3
