"""Which delivery processes are alive: a session ends after silence, unless the connection was down."""

from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.transport.sessions import REMEMBERED_MAX, DeliverySessions


def test_a_session_starts_with_its_first_message_and_ends_after_ten_seconds_of_silence() -> None:
    sessions = DeliverySessions()

    assert sessions.record_seen(1, at=0)
    assert sessions.record_seen(2, at=5)

    assert (sessions.find_silent(at=9.9), sessions.find_next_silence()) == ([], 10)
    assert (sessions.find_silent(at=10), len(sessions)) == ([1], 2)


def test_an_ended_session_does_not_start_again() -> None:
    sessions = DeliverySessions()
    sessions.record_seen(1, at=0)

    sessions.end(1)

    assert sessions.is_over(1)
    assert not sessions.record_seen(1, at=1)
    assert (sessions.find_silent(at=100), sessions.find_next_silence(), len(sessions)) == ([], None, 0)


def test_a_broken_connection_restarts_the_time_of_silence() -> None:
    sessions = DeliverySessions()
    sessions.record_seen(1, at=0)

    sessions.reset_silence(at=9)

    assert (sessions.find_silent(at=18), sessions.find_silent(at=19)) == ([], [1])


def test_restored_sessions_have_ten_seconds_and_ended_ones_stay_ended() -> None:
    sessions = DeliverySessions()
    sessions.record_seen(9, at=0)

    sessions.restore([1, 2], [3], at=50)

    assert (len(sessions), sessions.find_silent(at=59), sessions.find_silent(at=60)) == (2, [], [1, 2])
    assert sessions.is_over(3)


def test_the_memory_of_ended_sessions_is_bounded() -> None:
    sessions = DeliverySessions()

    for session in range(1, REMEMBERED_MAX + 2):
        sessions.end(session)

    assert (sessions.is_over(1), sessions.is_over(2)) == (False, True)


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0, 30)), max_size=50))
def test_exactly_the_sessions_without_a_message_for_ten_seconds_are_silent(
    messages: list[tuple[int, float]],
) -> None:
    sessions = DeliverySessions()
    heard_at: dict[int, float] = {}
    for session, at in sorted(messages, key=lambda message: message[1]):
        sessions.record_seen(session, at=at)
        heard_at[session] = at

    assert set(sessions.find_silent(at=30)) == {session for session, at in heard_at.items() if 30 - at >= 10}
