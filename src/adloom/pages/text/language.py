"""The language of a text, by its script and by the commonest words of each language.

A model of n-grams would know more languages, and needs 100 MB: more than the crawler has left.
"""

# pure

import re
from collections.abc import Mapping
from typing import Final

TEXT_CHARACTERS_READ: Final = 2_000
LETTERS_MIN: Final = 20
# Of all words, this share must be common words of the language; in running text it is a third and more.
SHARE_MIN: Final = 0.08
WORDS_MIN: Final = 5

_WORD: Final = re.compile(r"[^\W\d_]+")
_TAG: Final = re.compile(r"([A-Za-z]{2,3})(?:[-_].*)?")

# Languages written with the Latin alphabet: common words that few of the others share.
COMMON_WORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the of and to in is that for it with as was on are by this be from at have not you they his her an or "
        "we their which has were will can your more but been when who if would about out up what there",
        "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus "
        "er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor "
        "zur bis mehr durch man sein wurde wenn ich wir",
        "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec son "
        "cette ou aux mais comme leur nous vous elle ses été être fait ont tout deux même l d n qu c s",
        "es": "de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o este sí "
        "porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos durante son está",
        "it": "di e il la che in a per un è del non una della sono con si da le dei al come i alla più ha nel anche lo "
        "gli ma delle dal nella o questo questa se suo essere stato ed degli tra sua loro dell l",
        "pt": "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à "
        "seu sua ou ser quando muito há nos já está eu também só pelo pela até isso ela entre era depois são",
        "nl": "de van het een en in is dat op te zijn met voor niet aan er om hij ook als dan maar bij nog uit naar "
        "door over ze wordt werd heeft hebben deze je tot wel meer kan geen dit worden die was al ik wij",
        "pl": "w i na z się do nie to że jest o po jak przez od co dla ale tym za są oraz był tego które może tylko "
        "jego być który także ich czy już przed ma roku tak która lub",
        "tr": "ve bir bu da de için ile çok olarak daha gibi en olan kadar ne var sonra ama o ki her olduğu göre ya "
        "değil mi oldu ancak iki türkiye ise bunu veya ilk yeni",
        "sv": "och i att det som en på är av för med den till har inte om ett de var jag men sig så han från vi kan "
        "när år under också efter eller nu sin där vid mot ska",
        "da": "og i at det en den til er som på de med for af ikke der var han et har om jeg men sig fra kan vi så "
        "også eller efter nu hun ved blev efter når bliver",
        "no": "og i det er som en på å til av for at med de ikke har den om et var seg han men fra jeg kan så vi ble "
        "også etter eller nå hun ved blir mot skal når",
        "fi": "ja on ei se että oli hän mutta joka ovat kun niin myös sen kuin tai mukaan jos hänen sitä voi vain nyt "
        "olla ole sekä mitä jo kanssa siitä tämä",
        "cs": "a se v na je že o s z do i to k ve pro za by ale si po jako jsou které od jeho které jen nebo být už "
        "který byl také až při tak není podle roku",
        "hu": "a az és hogy nem is egy ez meg de csak már van volt mint még ha ki el vagy kell lehet ezt azt sem több "
        "után minden volna szerint lesz",
        "ro": "de și în a la cu pe nu o că din care mai este un sau pentru fi ca sunt au prin dar să lui ale după când "
        "fost această acest fără cele",
    }.items()
}

# Scripts that one language, or nearly one, is written in; the first range with the most letters decides.
_SCRIPTS: Final = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
)
_UKRAINIAN: Final = re.compile("[іїєґІЇЄҐ]")
_RUSSIAN: Final = re.compile("[ыэъёЫЭЪЁ]")


def read_language_tag(tag: str | None) -> str | None:
    """Return the primary language of a tag such as `de-CH`."""
    match = _TAG.fullmatch(tag.strip()) if tag else None
    return match[1].lower() if match else None


def detect_language(text: str) -> str | None:
    """Return the language of a text; None where it is too short or none of ours."""
    text = text[:TEXT_CHARACTERS_READ]
    letters = sum(map(str.isalpha, text))
    if letters < LETTERS_MIN:
        return None
    by_script = _detect_by_script(text, letters)
    if by_script is not None:
        return by_script
    words = [word.lower() for word in _WORD.findall(text)]
    if len(words) < WORDS_MIN:
        return None
    counts = {language: sum(word in common for word in words) for language, common in COMMON_WORDS.items()}
    language = max(counts, key=counts.__getitem__)
    return language if counts[language] >= SHARE_MIN * len(words) else None


def _detect_by_script(text: str, letters: int) -> str | None:
    counts = {language: len(script.findall(text)) for language, script in _SCRIPTS}
    if counts["ja"] * 10 >= letters:  # Japanese is written with Chinese characters too.
        return "ja"
    language = max(counts, key=counts.__getitem__)
    if counts[language] * 2 < letters:
        return None
    if language == "ru" and len(_UKRAINIAN.findall(text)) > len(_RUSSIAN.findall(text)):
        return "uk"
    return language
