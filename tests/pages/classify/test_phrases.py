"""The shape of the seed phrases: the classifier takes the mean of the 8 most similar phrases of a node."""

from importlib import resources

from adloom.taxonomy.iab import load_content
from tests.support.for_each import for_each

TIER = 2
PHRASES_MIN = 8
PHRASES_MAX = 14
BROAD_PHRASES_MAX = 30  # of a node that has nodes below it: it covers all of them
CHARACTERS_MAX = 60
WORDS_MAX = 7


def read_rows() -> list[tuple[str, str, list[str]]]:
    file = resources.files("adloom.pages.classify").joinpath("data/tier2-phrases.tsv")
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows: list[tuple[str, str, list[str]]] = []
    for line in lines:
        node_id, name, phrases = line.split("\t")
        rows.append((node_id, name, phrases.split("; ")))
    return rows


ROWS = read_rows()


def test_every_node_of_the_tier_has_one_row() -> None:
    wanted = [(node.id, node.name) for node in load_content() if node.tier == TIER]
    assert sorted((node_id, name) for node_id, name, _ in ROWS) == sorted(wanted)


@for_each(("node_id", "phrases"), [(row[0], row[2]) for row in ROWS])
def test_a_node_has_enough_short_phrases(node_id: str, phrases: list[str]) -> None:
    most = BROAD_PHRASES_MAX if load_content().list_children(node_id) else PHRASES_MAX
    assert PHRASES_MIN <= len(phrases) <= most
    for phrase in phrases:
        assert phrase, "no phrase is empty"
        assert phrase == " ".join(phrase.split()), "no spaces around a phrase, and one between words"
        assert ";" not in phrase
        assert len(phrase) <= CHARACTERS_MAX
        assert len(phrase.split()) <= WORDS_MAX


def test_a_phrase_belongs_to_one_node_of_a_root() -> None:
    seen: set[tuple[str, str]] = set()
    twice: list[str] = []
    for node_id, _, phrases in ROWS:
        node = load_content().find(node_id)
        assert node
        for phrase in phrases:
            key = (node.root_id, phrase.casefold())
            if key in seen:
                twice.append(f"{phrase} ({node.name})")
            seen.add(key)
    assert twice == []
