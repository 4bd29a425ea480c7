"""The page about the crawler: where its `User-Agent` says."""

import re

import pytest

from adloom.runtime.background_settings import read_crawler_settings
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest, FastRoutes
from adloom.serving.crawler_page import build_crawler_routes

SERVICES = {"DATABASE_URL": "postgresql://x/x", "REDIS_URL": "redis://x"}


@pytest.mark.parametrize("url", ["https://ads.example.com", "https://ads.example.com/", None])
def test_the_user_agent_links_to_a_page_of_delivery(url: str | None) -> None:
    variables = SERVICES if url is None else {**SERVICES, "ADLOOM_DELIVERY_URL": url}
    agent = read_crawler_settings(variables).outbound.user_agent

    link = re.fullmatch(r"AdloomBot/1\.0 \(\+https?://[\w.:]+(/\w+)\)", agent)
    assert link is not None, agent
    route = FastRoutes(build_crawler_routes()).find(b"GET", link[1].encode())
    assert route is not None
    answer = route.handler(FastRequest(b"GET", link[1].encode()))
    assert isinstance(answer, FastAnswer)
    assert b"User-agent: AdloomBot\nDisallow: /" in answer.body
