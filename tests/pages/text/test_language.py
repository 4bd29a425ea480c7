"""The language of a text is found by its script and its commonest words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.pages.text.language import detect_language, read_language_tag
from tests.support.for_each import for_each

SENTENCES = {
    "en": "The council has voted to close the bridge for two years, and the shops on the north bank will have to wait.",
    "de": "Der Stadtrat hat beschlossen, die Brücke für zwei Jahre zu sperren, und die Läden am Nordufer müssen warten.",
    "fr": "Le conseil municipal a décidé de fermer le pont pendant deux ans, et les commerces devront attendre.",
    "es": "El ayuntamiento ha decidido cerrar el puente durante dos años y los comercios tendrán que esperar.",
    "it": "Il consiglio comunale ha deciso di chiudere il ponte per due anni e i negozi dovranno aspettare.",
    "pt": "A câmara municipal decidiu fechar a ponte durante dois anos e as lojas terão de esperar, mas não há pressa.",
    "nl": "De gemeenteraad heeft besloten de brug voor twee jaar te sluiten en de winkels moeten nog wachten.",
    "pl": "Rada miasta zdecydowała się zamknąć most na dwa lata, a sklepy po drugiej stronie nie mogą tylko czekać.",
    "tr": "Belediye meclisi köprüyü iki yıl için kapatmaya karar verdi ve bu dükkanlar daha çok bekleyecek gibi.",
    "sv": "Kommunen har beslutat att stänga bron under två år och butikerna på norra sidan får vänta, det är inte bra.",
    "ru": "Городской совет решил закрыть мост на два года, и магазинам на северном берегу придётся ждать.",
    "uk": "Міська рада вирішила закрити міст на два роки, і крамницям на північному березі доведеться чекати.",
    "ja": "市議会は橋を二年間閉鎖することを決定し、北岸の店は待たなければならない。雨の日も続く。",
    "zh": "市议会决定将大桥关闭两年，北岸的商店只能继续等待，居民们对此表示非常不满意。",
    "ko": "시의회는 다리를 2년 동안 폐쇄하기로 결정했고 북쪽 강변의 상점들은 기다려야 한다.",
    "ar": "قرر مجلس المدينة إغلاق الجسر لمدة عامين وسيتعين على المتاجر في الضفة الشمالية الانتظار.",
    "th": "สภาเมืองมีมติปิดสะพานเป็นเวลาสองปี และร้านค้าฝั่งเหนือจะต้องรอต่อไป",
}


@for_each("language", SENTENCES)
def test_a_sentence_is_known(language: str) -> None:
    assert detect_language(SENTENCES[language]) == language


@pytest.mark.parametrize("text", ["", "Ok", "12345 67890 " * 20, "xqz wvk plm rtt bnn zzk qqw"])
def test_what_is_no_sentence_has_no_language(text: str) -> None:
    assert detect_language(text) is None


@given(st.text(max_size=300))
def test_any_text_has_a_language_or_none(text: str) -> None:
    language = detect_language(text)

    assert language is None or len(language) == 2


@pytest.mark.parametrize(
    ("tag", "language"),
    [("de-CH", "de"), (" EN ", "en"), ("pt_BR", "pt"), ("", None), ("x", None), ("<de>", None)],
)
def test_the_primary_language_of_a_tag(tag: str, language: str | None) -> None:
    assert read_language_tag(tag) == language
