"""The table of fast routes and the headers of answers, without a socket."""

from http import HTTPStatus

import pytest

from adloom.runtime.http.fast.fast_routes import (
    FastAnswer,
    FastRequest,
    FastRoute,
    FastRoutes,
    encode_head,
    make_alias_route,
)
from tests.support.for_each import for_each


def a_route(method: bytes, path: bytes, *, is_prefix: bool = False) -> FastRoute:
    return FastRoute(method, path, is_prefix=is_prefix, handler=lambda _: FastAnswer(b""))


SERVE = a_route(b"GET", b"/serve/", is_prefix=True)
SERVE_PAGE = a_route(b"POST", b"/serve")
EXPLAIN = a_route(b"GET", b"/serve/explain/", is_prefix=True)
SELF = a_route(b"POST", b"/serve/self")
ROUTES = FastRoutes([SERVE, SERVE_PAGE, EXPLAIN, SELF])


@for_each(
    ("method", "path", "route"),
    [
        (b"GET", b"/serve/home", SERVE),
        (b"GET", b"/serve/", SERVE),
        (b"HEAD", b"/serve/home", SERVE),
        (b"GET", b"/serve/explain/home", EXPLAIN),
        (b"GET", b"/serve/explain", SERVE),
        (b"POST", b"/serve", SERVE_PAGE),
        (b"POST", b"/serve/self", SELF),
        (b"GET", b"/serve/self", SERVE),
        (b"GET", b"/served", None),
        (b"GET", b"/", None),
    ],
)
def test_the_most_specific_route_answers(method: bytes, path: bytes, route: FastRoute | None) -> None:
    assert ROUTES.find(method, path) is route


def test_another_method_gets_405() -> None:
    found = ROUTES.find(b"DELETE", b"/serve/home")

    assert found is not None
    assert found.fixed_rejection is not None
    assert found.fixed_rejection.head.startswith(b"HTTP/1.1 405 ")


@pytest.mark.parametrize(("path", "known"), [(b"/a/s/home", b"/serve/home"), (b"/a/s", b"/serve")])
def test_an_alias_gives_the_handler_the_path_that_it_knows(path: bytes, known: bytes) -> None:
    seen: list[bytes] = []

    def note(request: FastRequest) -> FastAnswer:
        seen.append(request.path)
        return FastAnswer(b"")

    routes = [
        FastRoute(b"GET", b"/serve/", is_prefix=True, handler=note),
        FastRoute(b"GET", b"/serve", is_prefix=False, handler=note),
    ]
    table = FastRoutes(routes, [make_alias_route(routes[0], b"/a/s/"), make_alias_route(routes[1], b"/a/s")])

    found = table.find(b"GET", path)
    assert found is not None
    found.handler(FastRequest(b"GET", path))

    assert seen == [known]
    assert table.find(b"GET", b"/serve/home") is routes[0]
    assert table.find(b"GET", b"/b/s") is None


def test_a_route_may_handle_options_itself() -> None:
    options = a_route(b"OPTIONS", b"/x")

    assert FastRoutes([options]).find(b"OPTIONS", b"/x") is options


def test_the_first_of_a_repeated_header_counts() -> None:
    request = FastRequest(b"GET", b"/", headers=[(b"a", b"1"), (b"b", b"2"), (b"a", b"3")])

    assert request.get_header(b"a") == b"1"
    assert request.get_header(b"c") is None


@pytest.mark.parametrize(
    "header",
    [
        (b"location", b"https://a.example/\r\nset-cookie: a=b"),
        (b"location", b"a\nb"),
        (b"location", b"a\x00b"),
        (b"location\r\nx", b"a"),
        (b"", b"a"),
        (b"location ", b"a"),
    ],
)
def test_a_header_with_a_line_break_is_not_sent(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        encode_head(HTTPStatus.FOUND, None, header)
