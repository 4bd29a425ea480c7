import socket
from collections.abc import Iterator

import httpx
import pytest

from adloom import VERSION
from adloom.runtime.ports import find_port, is_taken
from adloom.runtime.settings import SettingsError, Telemetry
from adloom.runtime.telemetry.metrics import serve_metrics


def a_telemetry(port: int | None) -> Telemetry:
    return Telemetry(
        process="delivery-1", log_level="info", log_format="json", metrics_port=port, otlp_endpoint=None
    )


def scrape(port: int) -> list[str]:
    return httpx.get(f"http://127.0.0.1:{port}/metrics").raise_for_status().text.splitlines()


@pytest.fixture
def port() -> Iterator[int]:
    port = find_port()
    yield port
    assert not is_taken("127.0.0.1", port), "the server stops with its block"


def test_a_counter_is_read_at_each_scrape(port: int) -> None:
    served = 0
    with serve_metrics(a_telemetry(port)) as metrics:
        metrics.add_counter("adloom_served", "Requests answered.", lambda: served)
        assert "adloom_served_total 0.0" in scrape(port)

        served = 41

        assert "adloom_served_total 41.0" in scrape(port)


def test_nothing_is_read_before_a_scrape(port: int) -> None:
    reads: list[int] = []

    def read() -> int:
        reads.append(1)
        return 0

    with serve_metrics(a_telemetry(port)) as metrics:
        metrics.add_counter("adloom_served", "Requests answered.", read)
        metrics.add_gauge("adloom_lag", "Entries not yet projected.", read)

        assert reads == []


def test_metrics_can_have_a_label(port: int) -> None:
    with serve_metrics(a_telemetry(port)) as metrics:
        metrics.add_counters("adloom_events", "Events.", "outcome", lambda: {"accepted": 2, "repeated": 1})
        metrics.add_gauges("adloom_queue", "Jobs.", "state", lambda: {"waiting": 0.5})

        lines = scrape(port)

    assert 'adloom_events_total{outcome="accepted"} 2.0' in lines
    assert 'adloom_events_total{outcome="repeated"} 1.0' in lines
    assert 'adloom_queue{state="waiting"} 0.5' in lines


def test_a_histogram_counts_up_to_each_bound(port: int) -> None:
    with serve_metrics(a_telemetry(port)) as metrics:
        metrics.add_histogram("adloom_wait_seconds", "Waits.", (0.5, 1.0), lambda: ([2, 1, 1], 7.5))

        lines = scrape(port)

    assert [line for line in lines if line.startswith("adloom_wait_seconds")] == [
        'adloom_wait_seconds_bucket{le="0.5"} 2.0',
        'adloom_wait_seconds_bucket{le="1.0"} 3.0',
        'adloom_wait_seconds_bucket{le="+Inf"} 4.0',
        "adloom_wait_seconds_count 4.0",
        "adloom_wait_seconds_sum 7.5",
    ]


def test_the_build_and_the_start_of_the_process_are_shown(port: int) -> None:
    with serve_metrics(a_telemetry(port)):
        text = "\n".join(scrape(port))

    assert f'version="{VERSION}"' in text
    assert 'process="delivery-1"' in text
    assert "process_start_time_seconds " in text
    assert "process_resident_memory_bytes " in text


def test_each_metrics_server_has_its_own_registry() -> None:
    with serve_metrics(a_telemetry(None)) as first, serve_metrics(a_telemetry(None)) as second:
        first.add_gauge("adloom_lag", "Entries.", lambda: 1)
        second.add_gauge("adloom_lag", "Entries.", lambda: 2)

    assert first.registry.get_sample_value("adloom_lag") == 1
    assert second.registry.get_sample_value("adloom_lag") == 2


def test_a_taken_port_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with (
            pytest.raises(SettingsError, match=f"ADLOOM_METRICS_PORT is {port}"),
            serve_metrics(a_telemetry(port)),
        ):
            pass
