"""What is at the control plane's door."""

from tests.support.control import ControlPlane

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_a_browser_is_led_to_the_console(control: ControlPlane) -> None:
    async with control.client(**BROWSER) as client:
        answer = await client.get("/")

    assert (answer.status_code, answer.headers["location"]) == (303, "/console")


async def test_a_program_is_told_where_everything_is(control: ControlPlane) -> None:
    async with control.client() as client:
        answer = await client.get("/")

        assert answer.status_code == 200
        told = answer.json()
        assert told["console"] == "http://127.0.0.1:8090/console"
        paths = [told[name].removeprefix("http://127.0.0.1:8090") for name in ("openapi", "health")]
        assert [(await client.get(path)).status_code for path in paths] == [200, 200]


async def test_it_is_no_part_of_the_api(control: ControlPlane) -> None:
    async with control.client() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]

    assert not [path for path in paths if path == "/" or path.startswith("/console")]
