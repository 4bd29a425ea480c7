"""Real user agents and the kinds of devices behind them."""

import pytest

from adloom.serving.request.device import CACHED_AGENTS_MAX, DeviceParser
from tests.support.for_each import for_each

WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
IOS_WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"

DESKTOPS = {
    "Chrome, Windows": f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/131.0.0.0 Safari/537.36",
    "Firefox, Windows": "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0",
    "Edge": f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0",
    "Safari, Mac": f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {IOS_WEBKIT} Version/18.1 Safari/605.1.15",
    # The same bytes as on a Mac: only the page can know, and may send ?device=tablet.
    "iPad, desktop mode": f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) {IOS_WEBKIT} Version/17.6 Safari/605.1.15",
    "Firefox, Linux": "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
    "Chromebook": f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {WEBKIT} Chrome/130.0.0.0 Safari/537.36",
    "IE 11": "Mozilla/5.0 (Windows NT 6.1; WOW64; Trident/7.0; rv:11.0) like Gecko",
    "IE 11, touch": "Mozilla/5.0 (Windows NT 6.3; WOW64; Trident/7.0; Touch; Tablet PC 2.0; rv:11.0) like Gecko",
    "Samsung TV": f"Mozilla/5.0 (SMART-TV; LINUX; Tizen 6.0) {WEBKIT} 76.0.3809.146/6.0 TV Safari/537.36",
    "LG TV": f"Mozilla/5.0 (Web0S; Linux/SmartTV) {WEBKIT} Chrome/94.0.4606.128 Safari/537.36 WebAppManager",
    "Sony TV": f"Mozilla/5.0 (Linux; Android 9; BRAVIA 4K UR2 Build/PTT1.190515.001.S52) {WEBKIT} Chrome/84.0.4147.125 Safari/537.36",
    "Fire TV": f"Mozilla/5.0 (Linux; Android 9; AFTMM Build/PS7633.3445N; wv) {WEBKIT} Version/4.0 Chrome/108.0.5359.220 Safari/537.36",
    "Google TV": f"Mozilla/5.0 (Linux; Android 12; Chromecast Build/STTE.230915.008) {WEBKIT} Chrome/110.0.5481.154 Safari/537.36",
    "Shield": f"Mozilla/5.0 (Linux; Android 11; SHIELD Android TV Build/RQ1A.210105.003; wv) {WEBKIT} Version/4.0 Chrome/99.0.4844.88 Safari/537.36",
    "Chromecast": f"Mozilla/5.0 (X11; Linux armv7l) {WEBKIT} Chrome/90.0.4430.225 Safari/537.36 CrKey/1.56.500000 DeviceType/Chromecast",
    "Roku": "Roku/DVP-12.5 (12.5.0.4178-46)",
    "Apple TV": "AppleTV11,1/11.1",
    "HbbTV": "HbbTV/1.5.1 (+DRM; TCL; C825K; V8-R851T02-LF1V345; ; ) LaTivu_1.0.1_2021",
    "PlayStation": f"Mozilla/5.0 (PlayStation; PlayStation 5/2.26) {IOS_WEBKIT} Version/13.0 Safari/605.1.15",
    "Quest": f"Mozilla/5.0 (Linux; Android 12; Quest 3) {WEBKIT} OculusBrowser/31.3 Chrome/121.0.0.0 VR Safari/537.36",
    "Googlebot": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Bingbot": "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36",
    "Facebook's preview": "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "curl": "curl/8.5.0",
    "httpx": "python-httpx/0.28.1",
    "a device without a name": "; wetab Build",
    "nonsense": "\u00ff\u00fe()",
}
MOBILES = {
    "iPhone": f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) {IOS_WEBKIT} Version/18.1 Mobile/15E148 Safari/604.1",
    "iPhone, Chrome": f"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) {IOS_WEBKIT} CriOS/131.0.6778.73 Mobile/15E148 Safari/604.1",
    "iPhone, Facebook": f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) {IOS_WEBKIT} Mobile/15E148 [FBAN/FBIOS;FBAV/470.0.0.40.109;FBDV/iPhone14,5;FBSS/3]",
    "iPod": f"Mozilla/5.0 (iPod touch; CPU iPhone OS 12_5_7 like Mac OS X) {IOS_WEBKIT} Version/12.1.2 Mobile/15E148 Safari/604.1",
    "an app on iOS": "MyShop/4.2 CFNetwork/1568.200.51 Darwin/24.1.0",
    "Android, reduced": f"Mozilla/5.0 (Linux; Android 10; K) {WEBKIT} Chrome/131.0.0.0 Mobile Safari/537.36",
    "Pixel": f"Mozilla/5.0 (Linux; Android 14; Pixel 8 Pro) {WEBKIT} Chrome/130.0.6723.102 Mobile Safari/537.36",
    "Samsung": f"Mozilla/5.0 (Linux; Android 13; SM-S918B) {WEBKIT} SamsungBrowser/26.0 Chrome/122.0.0.0 Mobile Safari/537.36",
    "Firefox, Android": "Mozilla/5.0 (Android 14; Mobile; rv:132.0) Gecko/132.0 Firefox/132.0",
    "an app on Android": "Dalvik/2.1.0 (Linux; U; Android 13; Pixel 7 Build/TQ3A.230901.001)",
    "KaiOS": "Mozilla/5.0 (Mobile; Nokia 8110 4G; rv:48.0) Gecko/48.0 Firefox/48.0 KAIOS/2.5",
    "Windows Phone": f"Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1; Microsoft; Lumia 950) {WEBKIT} Chrome/52.0.2743.116 Mobile Safari/537.36 Edge/15.15063",
    "Opera Mini": "Opera/9.80 (Android; Opera Mini/36.2.2254/119.132; U; id) Presto/2.12.423 Version/12.16",
    "BlackBerry": "BlackBerry9700/5.0.0.862 Profile/MIDP-2.1 Configuration/CLDC-1.1 VendorID/331",
    "Googlebot, smartphone": f"Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) {WEBKIT} Chrome/130.0.6723.69 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
}
TABLETS = {
    "iPad": f"Mozilla/5.0 (iPad; CPU OS 17_6 like Mac OS X) {IOS_WEBKIT} Version/17.6 Mobile/15E148 Safari/604.1",
    "iPad, Chrome": f"Mozilla/5.0 (iPad; CPU OS 12_2 like Mac OS X) {IOS_WEBKIT} CriOS/131.0.6778.73 Mobile/15E148 Safari/604.1",
    "Android, reduced": f"Mozilla/5.0 (Linux; Android 10; K) {WEBKIT} Chrome/131.0.0.0 Safari/537.36",
    "Galaxy Tab": f"Mozilla/5.0 (Linux; Android 13; SM-X906C) {WEBKIT} Chrome/130.0.0.0 Safari/537.36",
    "Galaxy Tab, Samsung": f"Mozilla/5.0 (Linux; Android 9; SM-T510) {WEBKIT} SamsungBrowser/25.0 Chrome/121.0.0.0 Safari/537.36",
    "Galaxy Tab that says Mobile": "Mozilla/5.0 (Linux; U; Android 4.4.2; en-us; GT-P5210 Build/KOT49H) AppleWebKit/534.30 (KHTML, like Gecko) Version/4.0 Mobile Safari/534.30",
    "Lenovo": f"Mozilla/5.0 (Linux; Android 11; Lenovo TB-X606F) {WEBKIT} Chrome/114.0.0.0 Safari/537.36",
    "Pixel C": f"Mozilla/5.0 (Linux; Android 7.0; Pixel C Build/NRD90M; wv) {WEBKIT} Version/4.0 Chrome/52.0.2743.98 Safari/537.36",
    "Firefox, tablet": "Mozilla/5.0 (Android 13; Tablet; rv:132.0) Gecko/132.0 Firefox/132.0",
    "Kindle Fire": f"Mozilla/5.0 (Linux; Android 9; KFMAWI) {WEBKIT} Silk/112.5.1 like Chrome/112.0.5615.213 Safari/537.36",
    "Kindle Fire that says Mobile": "Mozilla/5.0 (Linux; U; Android 4.0.3; en-us; KFTT Build/IML74K) AppleWebKit/535.19 (KHTML, like Gecko) Silk/3.4 Mobile Safari/535.19 Silk-Accelerated=true",
    "Kindle parser": "Mozilla/5.0 (X11; U; Linux armv7l like Android; en-us) AppleWebKit/531.2+ (KHTML, like Gecko) Version/5.0 Safari/533.2+ Kindle/3.0+",
    "PlayBook": "Mozilla/5.0 (PlayBook; U; RIM Tablet OS 2.1.0; en-US) AppleWebKit/536.2+ (KHTML, like Gecko) Version/7.2.1.0 Safari/536.2+",
}
CASES = [
    (agent, kind)
    for kind, agents in (("desktop", DESKTOPS), ("mobile", MOBILES), ("tablet", TABLETS))
    for agent in agents.values()
]


@pytest.fixture(scope="module")
def parser() -> DeviceParser:
    return DeviceParser()


@for_each(("agent", "kind"), CASES)
def test_a_user_agent_has_this_kind_of_device(parser: DeviceParser, agent: str, kind: str) -> None:
    assert parser.device_of(agent.encode("latin-1")) == kind


@pytest.mark.parametrize("agent", [b"", b"   "])
def test_without_a_user_agent_the_device_is_unknown(parser: DeviceParser, agent: bytes) -> None:
    assert parser.device_of(agent) is None


def test_the_cache_of_user_agents_is_bounded(parser: DeviceParser) -> None:
    assert parser.device_of.cache_info().maxsize == CACHED_AGENTS_MAX
