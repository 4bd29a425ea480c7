"""How many examples Hypothesis tries; a test may say otherwise.

The same examples in every run, so that a change fails by what it changed; `thorough` draws new ones. The quick lane
tries the first half of them: the properties are a third of its time.
"""

import os
import warnings

import hypothesis
from hypothesis.errors import HypothesisSideeffectWarning
from hypothesis.internal.charmap import intervals_from_codec
from hypothesis.internal.conjecture.providers import (
    _get_local_constants,  # pyright: ignore[reportPrivateUsage]
)

TEXTS = "utf-8"  # What `st.text` draws from.

hypothesis.settings.register_profile("quick", max_examples=50, deadline=None, derandomize=True)
hypothesis.settings.register_profile("quick_lane", max_examples=25, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=1_000, deadline=None)


def choose_examples(*, is_quick: bool) -> None:
    """Choose before tests are imported: their own settings are made from these."""
    hypothesis.settings.load_profile(
        os.environ.get("HYPOTHESIS_PROFILE", "quick_lane" if is_quick else "quick")
    )


def prepare_examples() -> None:
    """Read what examples are made of, which each worker would: constants of all modules that are loaded, for 0.7 s, and
    all characters of texts, in a fresh checkout for 1.4 s.
    """
    intervals_from_codec(TEXTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisSideeffectWarning)
        _get_local_constants()
