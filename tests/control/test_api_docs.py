"""Swagger UI on control, and that no other site may call control from a browser."""

import asyncio
import re

from adloom.app.control import build_openapi_document
from adloom.core.caller import Role
from tests.support.control import ControlPlane, problem
from tests.support.for_each import for_each


async def test_the_docs_load_nothing_from_elsewhere(control: ControlPlane) -> None:
    async with control.client() as visitor:
        page = await visitor.get("/docs")
        files = re.findall(r'(?:src|href)="(/[^"]+)"', page.text)

        assert page.status_code == 200
        assert not re.search(r"https?://", page.text)
        assert len(files) == 3
        # With every route open the page would take seconds.
        assert 'docExpansion: "none"' in (await visitor.get("/docs/start.js")).text
        assert [(await visitor.get(path)).status_code for path in files] == [200, 200, 200]
        problem(await visitor.get("/docs/index.html"), 404, "NOT_FOUND")
    policy = page.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy


@for_each("path", ["/admin/banners", "/auth/login", "/console/login", "/openapi.json", "/docs"])
async def test_control_lets_no_other_site_in(path: str, control: ControlPlane) -> None:
    headers = {"Origin": "https://evil.example", "Authorization": f"Bearer {control.token(Role.ADMIN)}"}
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    async with control.client(**headers) as elsewhere:
        answers = [
            await elsewhere.get(path),
            await elsewhere.post(path, json={}),
            await elsewhere.options(path, headers=asked),
        ]

    for answer in answers:
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert answers[2].status_code in {404, 405}


async def test_others_are_answered_while_the_description_is_built(control: ControlPlane) -> None:
    build_openapi_document.cache_clear()
    control.app.state.delivery_url = "https://not-described-yet.example"
    async with control.client() as visitor:
        describing = [asyncio.ensure_future(visitor.get("/openapi.json")) for _ in range(3)]
        answered = 0
        while not all(one.done() for one in describing):
            assert (await visitor.get("/docs/start.js")).status_code == 200
            answered += 1
            await asyncio.sleep(0.01)

    assert {one.result().status_code for one in describing} == {200}
    assert answered > 5
    assert build_openapi_document.cache_info().misses == 1
