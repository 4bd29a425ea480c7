"""Many values in one test: a failure names the value, and a run does not count each as a test."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

TIMES = 10 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1


def seeds(count: int) -> range:
    """Return so many seeds; `HYPOTHESIS_PROFILE=thorough` has ten times as many."""
    return range(count * TIMES)


def for_each(
    names: str | Sequence[str], values: Iterable[Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call a test with each value of one or some of its arguments. Fixtures are made once for all of them."""
    known = [names] if isinstance(names, str) else list(names)
    listed = [{names: value} if isinstance(names, str) else _name(known, value) for value in values]
    assert listed, f"no values for {', '.join(known)}"

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        async def run_async(**fixtures: Any) -> None:
            for given in listed:
                with noted(**given):
                    await test(**given, **fixtures)

        def run(**fixtures: Any) -> None:
            for given in listed:
                with noted(**given):
                    test(**given, **fixtures)

        each = functools.wraps(test)(run_async if inspect.iscoroutinefunction(test) else run)
        signature = inspect.signature(test)
        parameters = [one for one in signature.parameters.values() if one.name not in known]
        vars(each)["__signature__"] = signature.replace(parameters=parameters)  # Read by pytest.
        return each

    return decorate


def _name(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, values, strict=True))


@contextlib.contextmanager
def noted(**values: object) -> Generator[None]:
    """Let an error name the values with which it came."""
    try:
        yield
    except BaseException as error:
        error.add_note(", ".join(f"{name} = {value!r}" for name, value in values.items()))
        raise
