"""Many values in one test: a failure names the value, and a run does not count each as a test."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Generator, Iterable
from typing import Any

TIMES = 10 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1


def seeds(count: int) -> range:
    """Return so many seeds; `HYPOTHESIS_PROFILE=thorough` has ten times as many."""
    return range(count * TIMES)


def for_each(name: str, values: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call a test with each value of one of its arguments. Fixtures are made once for all of them."""
    listed = list(values)
    assert listed, f"no values for {name}"

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        async def run_async(**fixtures: Any) -> None:
            for value in listed:
                with named(value):
                    await test(**{name: value}, **fixtures)

        def run(**fixtures: Any) -> None:
            for value in listed:
                with named(value):
                    test(**{name: value}, **fixtures)

        each = functools.wraps(test)(run_async if inspect.iscoroutinefunction(test) else run)
        signature = inspect.signature(test)
        parameters = [one for one in signature.parameters.values() if one.name != name]
        vars(each)["__signature__"] = signature.replace(parameters=parameters)  # Read by pytest.
        return each

    @contextlib.contextmanager
    def named(value: object) -> Generator[None]:
        try:
            yield
        except BaseException as error:
            error.add_note(f"{name} = {value!r}")
            raise

    return decorate
