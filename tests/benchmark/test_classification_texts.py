"""The texts that measure the classifier have a known shape and cover the taxonomy."""

from collections import Counter
from pathlib import Path

import msgspec

import adloom
from adloom.taxonomy.iab import load_content

TEXTS = Path(adloom.__file__).parent / "benchmark" / "data" / "classification.jsonl"
TEXTS_PER_ROOT_MIN = 8
TIER2_SHARE_MIN = 0.6
TEXT_CHARACTERS_MIN = 350
TEXT_CHARACTERS_MAX = 900


class LabelledText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One line of the file."""

    id: str
    language: str
    title: str
    text: str
    root: str
    root_name: str
    tier2: str | None = None
    second_root: str | None = None


def read_texts() -> list[LabelledText]:
    lines = TEXTS.read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=LabelledText) for line in lines]


def test_every_text_is_like_an_extracted_page() -> None:
    for text in read_texts():
        assert TEXT_CHARACTERS_MIN <= len(text.text) <= TEXT_CHARACTERS_MAX, text.id
        assert 10 <= len(text.title) <= 100, text.id
        assert text.text == text.text.strip(), text.id


def test_no_text_is_there_twice() -> None:
    texts = read_texts()

    assert max(Counter(text.id for text in texts).values()) == 1
    assert max(Counter(text.title for text in texts).values()) == 1
    assert max(Counter(text.text for text in texts).values()) == 1


def test_every_root_has_enough_texts_in_both_languages() -> None:
    languages_by_root: dict[str, Counter[str]] = {}
    for text in read_texts():
        languages_by_root.setdefault(text.root, Counter())[text.language] += 1

    assert set(languages_by_root) == {root.id for root in load_content().list_children(None)}
    for root, languages in languages_by_root.items():
        assert languages.total() >= TEXTS_PER_ROOT_MIN, root
        assert set(languages) == {"de", "en"}, root


def test_most_texts_name_a_node_of_tier_2() -> None:
    texts = read_texts()

    assert sum(text.tier2 is not None for text in texts) >= TIER2_SHARE_MIN * len(texts)


def test_the_letters_of_a_text_fit_its_language() -> None:
    for text in read_texts():
        umlauts = sum(text.text.count(letter) for letter in "äöüÄÖÜß")
        assert umlauts >= 1 if text.language == "de" else umlauts <= 1, text.id


def test_labels_are_nodes_of_the_content_taxonomy() -> None:
    for text in read_texts():
        root = load_content().find(text.root)
        assert root is not None
        assert (root.tier, root.name) == (1, text.root_name), text.id
        if text.tier2 is not None:
            node = load_content().find(text.tier2)
            assert node is not None
            assert (node.tier, node.parent_id) == (2, text.root), text.id
        if text.second_root is not None:
            second = load_content().find(text.second_root)
            assert second is not None
            assert second.tier == 1
            assert second.id != text.root, text.id
