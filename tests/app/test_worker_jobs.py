"""The worker as a process: it runs jobs by the clock, and an invalid setting stops it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator

import httpx
import pytest

from adloom.core.ids import SystemIds
from adloom.identity.link.mail import put_link_mail
from adloom.runtime.mail.send import open_mail_queue
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from tests.support.forked import ForkedPopen
from tests.support.mail_server import a_mail_server

pytestmark = pytest.mark.process

INSERT_BANNER = """
    INSERT INTO banners (public_id, title, primary_image_url, schedule_status, publish_at)
    VALUES ($1, 'T', 'https://x/', 'scheduled', now() - interval '1 minute')
"""

INSERT_PERSON = "INSERT INTO users (public_id, email, role) VALUES ($1, 'ann@example.com', 'viewer')"


@contextlib.contextmanager
def a_worker(database_url: str, redis_url: str, **variables: str) -> Generator[subprocess.Popen[bytes]]:
    addresses = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "WORKER_PORT": str(find_port())}
    process = ForkedPopen(
        [sys.executable, "-m", "adloom.app.worker"],
        env={**os.environ, **addresses, **variables},
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_a_worker_publishes_a_due_banner_sends_mail_and_counts_both_in_its_metrics(
    pool: Pool, database_url: str, redis_url: str
) -> None:
    await pool.execute(INSERT_BANNER, SystemIds().make())
    person_id = SystemIds().make()
    await pool.execute(INSERT_PERSON, person_id)
    async with open_mail_queue(redis_url) as queue:
        await put_link_mail(queue, SystemIds().make(), person_id, "192.0.2.0/24")
    metrics_port = find_port()

    with (
        a_mail_server() as mails,
        a_worker(
            database_url, redis_url, ADLOOM_METRICS_PORT=str(metrics_port), ADLOOM_SMTP_URL=mails.url
        ) as process,
    ):
        async with asyncio.timeout(60):
            while not await pool.fetchval("SELECT schedule_status = 'active' FROM banners"):  # noqa: ASYNC110 - another process moves it
                await asyncio.sleep(0.05)
            async with httpx.AsyncClient(timeout=30) as client:
                metrics = ""
                while not metrics or any(
                    f'{name}{{outcome="{outcome}"}} 0.0' in metrics
                    for name, outcome in (("adloom_jobs_total", "done"), ("adloom_mails_total", "sent"))
                ):
                    metrics = (await client.get(f"http://127.0.0.1:{metrics_port}/metrics")).text
        before = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 60) == 0
        assert time.monotonic() - before < 30

    assert 'adloom_jobs_total{outcome="dead"} 0.0' in metrics
    assert 'adloom_job_queue_depth{state="dead"} 0.0' in metrics
    assert "adloom_schedule_moves_total 1.0" in metrics
    assert mails.recipients == ["ann@example.com"]
    assert "http://127.0.0.1:8090/console/password?token=" in mails.mails[0].get_content()


async def test_an_invalid_cron_expression_stops_the_worker_with_an_error(
    database_url: str, redis_url: str
) -> None:
    with a_worker(database_url, redis_url, BANNER_SCHEDULE_SYNC_CRON="every minute") as process:
        _, stderr = await asyncio.to_thread(process.communicate, timeout=60)

    assert process.returncode != 0
    assert b"BANNER_SCHEDULE_SYNC_CRON is 'every minute': expected a cron expression of five fields" in stderr
