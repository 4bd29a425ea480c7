"""Many values in one test: a failure names the value, and a run does not count each as a test."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def for_each(name: str, values: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call a test with each value of one of its arguments. Fixtures are made once for all of them."""
    listed = list(values)
    assert listed, f"no values for {name}"

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def each(**fixtures: Any) -> None:
                for value in listed:
                    try:
                        await test(**{name: value}, **fixtures)
                    except BaseException as error:
                        error.add_note(f"{name} = {value!r}")
                        raise
        else:

            @functools.wraps(test)
            def each(**fixtures: Any) -> None:
                for value in listed:
                    try:
                        test(**{name: value}, **fixtures)
                    except BaseException as error:
                        error.add_note(f"{name} = {value!r}")
                        raise

        signature = inspect.signature(test)
        parameters = [each for each in signature.parameters.values() if each.name != name]
        each.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined] - read by pytest
        return each

    return decorate
