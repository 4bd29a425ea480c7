"""The root path of the control plane."""

from tests.support.control import ControlPlane

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_a_browser_is_redirected_to_the_console(control: ControlPlane) -> None:
    async with control.client(**BROWSER) as client:
        answer = await client.get("/")

    assert (answer.status_code, answer.headers["location"]) == (303, "/console")


async def test_a_program_gets_the_addresses_of_console_api_and_health(control: ControlPlane) -> None:
    async with control.client() as client:
        answer = await client.get("/")

        assert answer.status_code == 200
        addresses = answer.json()
        assert addresses["console"] == "http://127.0.0.1:8090/console"
        paths = [addresses[name].removeprefix("http://127.0.0.1:8090") for name in ("openapi", "health")]
        assert [(await client.get(path)).status_code for path in paths] == [200, 200]


async def test_the_root_path_and_the_console_are_not_in_the_api_description(control: ControlPlane) -> None:
    async with control.client() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]

    assert not [path for path in paths if path == "/" or path.startswith("/console")]
