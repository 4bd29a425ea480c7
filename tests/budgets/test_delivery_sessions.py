"""Which delivery processes are alive: silence counts, where somebody could have been heard."""

from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.transport.sessions import REMEMBERED_MAX, DeliverySessions


def test_a_session_opens_with_the_first_sign_of_life_and_is_over_after_ten_seconds_of_silence() -> None:
    sessions = DeliverySessions()

    assert sessions.record_heard(1, at=0)
    assert sessions.record_heard(2, at=5)

    assert (sessions.find_silent(at=9.9), sessions.next_silence_at()) == ([], 10)
    assert (sessions.find_silent(at=10), len(sessions)) == ([1], 2)


def test_a_session_that_is_over_stays_over() -> None:
    sessions = DeliverySessions()
    sessions.record_heard(1, at=0)

    sessions.end(1)

    assert sessions.is_over(1)
    assert not sessions.record_heard(1, at=1)
    assert (sessions.find_silent(at=100), sessions.next_silence_at(), len(sessions)) == ([], None, 0)


def test_where_nobody_could_be_heard_silence_begins_anew() -> None:
    sessions = DeliverySessions()
    sessions.record_heard(1, at=0)

    sessions.reset_silence(at=9)

    assert (sessions.find_silent(at=18), sessions.find_silent(at=19)) == ([], [1])


def test_who_takes_over_gives_everyone_time_and_knows_who_is_over() -> None:
    sessions = DeliverySessions()
    sessions.record_heard(9, at=0)

    sessions.restore([1, 2], [3], at=50)

    assert (len(sessions), sessions.find_silent(at=59), sessions.find_silent(at=60)) == (2, [], [1, 2])
    assert sessions.is_over(3)


def test_sessions_that_are_over_are_not_remembered_for_ever() -> None:
    sessions = DeliverySessions()

    for session in range(1, REMEMBERED_MAX + 2):
        sessions.end(session)

    assert (sessions.is_over(1), sessions.is_over(2)) == (False, True)


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0, 30)), max_size=50))
def test_whoever_was_heard_of_lately_is_never_silent_and_all_others_are(
    signs: list[tuple[int, float]],
) -> None:
    sessions = DeliverySessions()
    heard_at: dict[int, float] = {}
    for session, at in sorted(signs, key=lambda sign: sign[1]):
        sessions.record_heard(session, at=at)
        heard_at[session] = at

    assert set(sessions.find_silent(at=30)) == {session for session, at in heard_at.items() if 30 - at >= 10}
