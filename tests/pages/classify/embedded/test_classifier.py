"""The embedded classifier: hierarchy, confidence, evidence, and what it holds on the texts that it was fitted on."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from adloom.pages.classify.embedded.chunks import (
    CHUNK_CHARACTERS_MAX,
    TEXT_CHARACTERS_READ,
    cut_chunks,
    read_page,
)
from adloom.pages.classify.embedded.classifier import (
    EVIDENCE_PER_CATEGORY,
    EmbeddedClassifier,
    load_embedded_classifier,
)
from adloom.pages.classify.embedded.encoder import DIMENSIONS, SentenceEncoder, Vectors
from adloom.pages.classify.embedded.phrases import PRIOR, load_phrases
from adloom.pages.classify.embedded.seed_vectors import load_seed_vectors, read_packaged
from adloom.pages.classify.protocol import (
    CONFIDENCE_MAX,
    CONFIDENCE_MIN,
    SECOND_CONFIDENCE_MIN,
    PageContent,
)
from adloom.taxonomy.iab import load_content

FITTING_TEXTS = Path(__file__).parent.parent / "data" / "fitting-texts.tsv"
TENNIS, SPORTS = "539", "483"
MATCH = PageContent(
    title="Champion saves two match points and reaches the last eight",
    text="The defending champion beat a young qualifier in five sets on the centre court. He served eighteen aces, "
    "but his backhand let him down in the second set. In the quarter-final of the tennis tournament he meets the "
    "number four of the world.",
)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedClassifier:
    return load_embedded_classifier(tmp_path_factory.mktemp("vectors"))


class HashEncoder:
    """Texts to vectors that mean nothing, fast and always the same."""

    version = "test"

    def __init__(self) -> None:
        self.encoded = 0

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.encoded += len(texts)
        rows = [
            np.random.default_rng(sum(map(ord, text))).standard_normal(DIMENSIONS).astype(np.float32)
            for text in texts
        ]
        vectors = np.stack(rows)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@given(st.text(max_size=3_000), st.text(max_size=100))
def test_chunks_are_bounded_and_lose_nothing(text: str, title: str) -> None:
    read = read_page(PageContent(title=title, text=text))
    chunks = cut_chunks(read)

    assert len(read) <= TEXT_CHARACTERS_READ
    assert all(0 < len(chunk) <= CHUNK_CHARACTERS_MAX + 1 for chunk in chunks)
    assert "".join("".join(chunks).split()) == "".join(read.split())


def test_chunks_end_at_sentence_ends() -> None:
    sentence = "The hatchback with the larger battery was ready after 28 minutes at a fast charger."

    assert cut_chunks(" ".join([sentence] * 4)) == [f"{sentence} {sentence}"] * 2


def test_every_root_has_phrases_and_a_known_prior() -> None:
    roots = {node.id for node in load_content() if node.parent_id is None}

    assert set(load_phrases().of_roots) == roots
    assert set(PRIOR) <= roots
    assert all(len(phrases) >= 15 for phrases in load_phrases().of_roots.values())


def test_vectors_are_computed_once_and_kept(tmp_path: Path) -> None:
    encoder = HashEncoder()
    first = load_seed_vectors(load_phrases(), encoder, tmp_path)
    computed = encoder.encoded

    second = load_seed_vectors(load_phrases(), encoder, tmp_path)

    assert encoder.encoded == computed == len(load_phrases().list_all())
    assert np.array_equal(first, second)
    assert [path.suffix for path in tmp_path.iterdir()] == [".npy"]


def test_a_broken_file_of_vectors_is_made_again(tmp_path: Path) -> None:
    encoder = HashEncoder()
    load_seed_vectors(load_phrases(), encoder, tmp_path)
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:1_000])

    vectors = load_seed_vectors(load_phrases(), encoder, tmp_path)

    assert vectors.shape == (len(load_phrases().list_all()), DIMENSIONS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_keeps_nobody_from_starting(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    assert len(load_seed_vectors(load_phrases(), HashEncoder(), tmp_path / "below"))


def test_a_page_is_known_by_its_node_and_by_the_phrases_that_decided(classifier: EmbeddedClassifier) -> None:
    found = classifier.classify_now(MATCH)

    assert found.categories[0].id == TENNIS
    assert 0.4 < found.categories[0].confidence <= CONFIDENCE_MAX
    of_tennis = [one for one in found.evidence if one.category == TENNIS]
    assert len(of_tennis) == EVIDENCE_PER_CATEGORY
    assert of_tennis[0].excerpt in read_page(MATCH)
    assert of_tennis[0].similarity >= of_tennis[-1].similarity


@pytest.mark.parametrize("text", ["", "   ", ".", "Home 404", "1 2 3 4 5 6 7 8 9 " * 20])
def test_a_page_without_text_has_no_category(classifier: EmbeddedClassifier, text: str) -> None:
    assert classifier.classify_now(PageContent(text=text)).categories == ()


@pytest.mark.parametrize(
    ("title", "text"),
    [
        (
            "Privacy settings",
            (
                "We and our partners use cookies to store and access information on a device. You may accept all, or "
                "choose which purposes you allow. You can change your choice at any time on this page."
            ),
        ),
        (
            "Along the lane",
            (
                "I went out before seven, when the lane was still wet and nobody had driven on it. Nothing much happened. "
                "A gate was open that is usually shut, and I shut it. Coming back I noticed that the light had changed, "
                "and that I had thought of nothing at all for an hour."
            ),
        ),
        (
            "Impressum",
            (
                "Angaben gemäß § 5 TMG. Verantwortlich für den Inhalt ist die oben genannte Person. Trotz sorgfältiger "
                "Kontrolle übernehmen wir keine Haftung für die Inhalte externer Links."
            ),
        ),
        (
            "",
            "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore.",
        ),
    ],
    ids=["cookies", "walk", "imprint", "lorem"],
)
def test_a_text_that_resembles_no_phrase_has_no_category(
    classifier: EmbeddedClassifier, title: str, text: str
) -> None:
    assert classifier.classify_now(PageContent(title=title, text=text)).categories == ()


# None was read while the phrases of notices were chosen.
NOTICES = [
    (
        "A sua privacidade é importante. Nós e os nossos parceiros guardamos e acedemos a informações num dispositivo, como "
        "cookies, e tratamos dados pessoais. Pode aceitar ou gerir as suas escolhas a qualquer momento."
    ),
    (
        "Wij gebruiken cookies en vergelijkbare technieken om onze website te verbeteren en advertenties te tonen. Je kunt "
        "je keuze altijd wijzigen."
    ),
    "ログインしてください。メールアドレスとパスワードを入力してください。パスワードをお忘れの方はこちら。",
    "Questo contenuto è riservato agli abbonati. Abbonati ora a 1 euro al mese. Hai già un abbonamento? Accedi.",
    "Unsere Website wird gerade aktualisiert. Wir sind in Kürze wieder für Sie da. Vielen Dank für Ihr Verständnis.",
    "JavaScript est désactivé dans votre navigateur. Pour utiliser ce site, veuillez l'activer, puis recharger la page.",
    "Se ha producido un error inesperado en el servidor. Inténtalo de nuevo dentro de unos minutos.",
    "To read the full story you need a digital subscription. Existing subscribers can log in here.",
]


@pytest.mark.parametrize("text", NOTICES)
def test_a_notice_in_place_of_an_article_has_no_category(classifier: EmbeddedClassifier, text: str) -> None:
    assert classifier.classify_now(PageContent(text=text)).categories == ()


def test_an_article_beside_a_notice_or_about_one_has_its_categories(classifier: EmbeddedClassifier) -> None:
    paywalled = f"{MATCH.text} Subscribe to continue reading. Already a subscriber? Log in."
    outage = (
        "A failure in a data centre took dozens of popular websites offline on Tuesday morning. Users saw error "
        "messages when they tried to log in to their banks. The provider said that an update had caused the outage."
    )

    assert classifier.classify_now(PageContent(text=paywalled)).categories[0].id == TENNIS
    assert classifier.classify_now(PageContent(text=outage)).categories


WORDS = [
    *(
        "tennis match",
        "bread from the oven",
        "the court",
        "Regierung und Parlament",
        "x",
        "12",
        "shares fell.",
    ),
    *("Katze!", "the bank raised its interest rates", "Urlaub am Meer", "\ud800"),
]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join))
@example("the bank raised its interest rates shares fell. tennis match Regierung und Parlament")
def test_categories_are_few_sorted_and_never_surer_than_their_root(
    classifier: EmbeddedClassifier, text: str
) -> None:
    page = PageContent(text=text)

    found = classifier.classify_now(page).categories

    roots = {root.id: root.confidence for root in classifier.rank_roots(page)}
    confidences = [one.confidence for one in found]
    assert len(found) <= 3
    assert confidences == sorted(confidences, reverse=True)
    assert len({load_content().find_path(one.id)[0] for one in found}) == len(found)
    for one, least in zip(
        found, [CONFIDENCE_MIN, SECOND_CONFIDENCE_MIN, SECOND_CONFIDENCE_MIN], strict=False
    ):
        node = load_content().find(one.id)
        assert node is not None
        assert least - 1e-4 <= one.confidence <= min(CONFIDENCE_MAX, roots[node.root_id]) + 1e-4


SEEDS = load_seed_vectors(load_phrases(), HashEncoder(), None)


def test_a_prior_moves_a_root_and_makes_another_version(classifier: EmbeddedClassifier) -> None:
    encoder = HashEncoder()
    plain = EmbeddedClassifier(load_phrases(), SEEDS, encoder)
    sporty = EmbeddedClassifier(load_phrases(), SEEDS, encoder, prior={SPORTS: 5.0})

    assert sporty.rank_roots(MATCH)[0].id == SPORTS
    assert len({plain.version, sporty.version, classifier.version}) == 3


@pytest.mark.slow
def test_the_texts_that_it_was_fitted_on_are_known(classifier: EmbeddedClassifier) -> None:
    rows = [
        line.split("\t")
        for line in FITTING_TEXTS.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    # Every other one: each takes a tenth of a second of a processor.
    pages = [(root, node, PageContent(title=title, text=text)) for _, root, node, title, text in rows[::2]]
    ranked = [(root, [one.id for one in classifier.rank_roots(page)]) for root, _, page in pages]
    nodes = [(node, classifier.rank_nodes(page, root)[0].id) for root, node, page in pages if node]

    assert sum(root == ids[0] for root, ids in ranked) / len(ranked) >= 0.88
    assert sum(root in ids[:3] for root, ids in ranked) / len(ranked) >= 0.97
    assert sum(node == best for node, best in nodes) / len(nodes) >= 0.80
    assert all(classifier.classify_now(page).categories for _, _, page in pages[::10])


async def test_classifying_in_a_thread_gives_the_same(classifier: EmbeddedClassifier) -> None:
    assert await classifier.classify(MATCH) == classifier.classify_now(MATCH)


def test_the_package_has_the_vectors_of_its_phrases() -> None:
    """After a change of phrases: `python -m adloom.pages.classify.embedded.seed_vectors`."""
    vectors = read_packaged(load_phrases(), SentenceEncoder())

    assert vectors is not None, "run `python -m adloom.pages.classify.embedded.seed_vectors`"
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=0.02)
