"""What `adloom up` says of servers of the operator that do not answer, and starts without."""

from adloom.app.up.run import list_valkey_warnings
from adloom.runtime.embedded.servers import Servers
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.ports import find_port


def servers_with(redis_url: str) -> Servers:
    nowhere = Listening()
    return Servers(
        database_url="postgresql://db/ads",
        redis_url=redis_url,
        postgres=None,
        valkey=None,
        postgres_place=nowhere,
        valkey_place=nowhere,
    )


async def test_a_valkey_of_the_operator_that_does_not_answer_is_named_with_its_setting() -> None:
    [warning] = await list_valkey_warnings(servers_with(f"redis://:secret@127.0.0.1:{find_port()}/0"))

    assert warning.startswith("Valkey does not answer: ")
    assert "REDIS_URL" in warning
    assert "secret" not in warning


async def test_a_valkey_that_answers_gets_no_warning(redis_url: str) -> None:
    assert await list_valkey_warnings(servers_with(redis_url)) == []
