"""Crawlers are recognized by their user agent; libraries that report for visitors are not crawlers."""

import pytest

from adloom.serving.request.device import AGENT_CHARACTERS_MAX, DeviceParser
from tests.support.for_each import for_each

IPHONE = b"Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.0 Mobile/15E148 Safari/604.1"
IS_CRAWLER = DeviceParser().is_crawler


@for_each(
    "agent",
    [
        b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        b"Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        IPHONE + b" (compatible; AdsBot-Google-Mobile; +http://www.google.com/mobile/adsbot.html)",
        b"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36",
        b"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.1; +https://openai.com/gptbot",
        b"Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)",
        b"Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)",
        b"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        b"Mediapartners-Google",
        b"CCBot/2.0 (https://commoncrawl.org/faq/)",
        b"Scrapy/2.11 (+https://scrapy.org)",
    ],
)
def test_a_crawler_is_recognized_by_its_user_agent(agent: bytes) -> None:
    assert IS_CRAWLER(agent)


@pytest.mark.parametrize(
    "agent",
    [
        b"",
        b"\xff\xfe",
        IPHONE,
        b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36",
        # A phone whose maker ends in «bot», and an e-book tablet whose browser is in the list of crawlers.
        b"Mozilla/5.0 (Linux; Android 9; CUBOT X19) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/91.0 Mobile Safari/537.36",
        b"Mozilla/5.0 (Linux; Android 11; KFTRWI) AppleWebKit/537.36 (KHTML, like Gecko) Silk/120.1 like Chrome/120.0 Safari/537.36",
    ],
)
def test_a_browser_is_not_a_crawler(agent: bytes) -> None:
    assert not IS_CRAWLER(agent)


@for_each(
    "agent",
    [
        b"curl/8.5.0",
        b"python-httpx/0.28.1",
        b"python-requests/2.32.3",
        b"Python-urllib/3.11",
        b"aiohttp/3.10",
        b"Go-http-client/1.1",
        b"Java/17.0.2",
        b"Java-http-client/17.0.2",
        b"Apache-HttpClient/4.5 (Java/17)",
        b"shop Google-HTTP-Java-Client/1.43.3 (gzip)",
        b"okhttp/4.12.0",
        b"axios/1.7.2",
        b"GuzzleHttp/7",
        b"WordPress/6.6; https://blog.example",
        b"AppEngine-Google; (+http://code.google.com/appengine; appid: s~shop)",
    ],
)
def test_a_library_is_not_a_crawler_since_a_server_may_report_for_its_visitors(agent: bytes) -> None:
    assert not IS_CRAWLER(agent)


def test_a_long_user_agent_is_recognized_by_its_beginning() -> None:
    assert IS_CRAWLER(b"Googlebot/2.1" + b" " * AGENT_CHARACTERS_MAX + b"x" * 10_000)
