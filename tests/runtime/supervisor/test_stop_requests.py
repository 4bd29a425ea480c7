"""The first request to stop asks, a later one insists."""

from adloom.runtime.supervisor.supervisor import SAME_SECONDS, StopRequests


def requested(*moments: float) -> list[str]:
    calls: list[str] = []
    requests = StopRequests(ask=lambda: calls.append("ask"), insist=lambda: calls.append("insist"))
    for moment in moments:
        requests.receive(moment)
    return calls


def test_one_stop_request_asks() -> None:
    assert requested(5.0) == ["ask"]


def test_a_ctrl_c_passed_on_by_the_parent_program_is_one_request() -> None:
    assert requested(5.0, 5.0 + SAME_SECONDS / 2) == ["ask"]


def test_a_second_ctrl_c_insists() -> None:
    assert requested(5.0, 5.0 + SAME_SECONDS) == ["ask", "insist"]
