"""What a person sees who opens the control plane in a browser."""

import base64
import hashlib
import re

from tests.support.control import ControlPlane


async def test_a_browser_is_shown_the_way_without_a_token(control: ControlPlane) -> None:
    async with control.client() as client:
        answer = await client.get("/")

        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "adloom token --role admin" in answer.text
        links = re.findall(r'href="([^"]+)"', answer.text)
        assert links == ["/openapi.json", "/health/ready"]
        assert [(await client.get(link)).status_code for link in links] == [200, 200]


async def test_it_runs_nothing_and_loads_nothing(control: ControlPlane) -> None:
    async with control.client() as client:
        answer = await client.get("/")

    [style] = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"].split("; ")
    assert policy[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert "<script" not in answer.text


async def test_it_is_no_part_of_the_api(control: ControlPlane) -> None:
    async with control.client() as client:
        assert "/" not in (await client.get("/openapi.json")).json()["paths"]
