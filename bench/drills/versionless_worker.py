"""A worker that writes states whatever version is there: without the version in the WHERE clause."""

from typing import Final

from adloom.app.worker import main
from adloom.runtime.actors import state_store

FENCE: Final = "WHERE it.version = EXCLUDED.version - 1"

if __name__ == "__main__":
    assert FENCE in state_store.KEEP, "the version is in the WHERE clause"
    setattr(state_store, "KEEP", state_store.KEEP.replace(FENCE, ""))  # noqa: B010 - on purpose
    main()
