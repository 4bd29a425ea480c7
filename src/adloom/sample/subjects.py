"""What the sample's pictures show: shapes in a box of 400 by 400, standing on a ground at 330."""

from types import MappingProxyType
from typing import Final

CREAM: Final = "#f6ead6"
INK: Final = "#2b2622"

TEA: Final = """
<ellipse cx="200" cy="332" rx="140" ry="15" fill="#0003"/>
<path d="M288 196q72-8 62 52-9 50-84 44" fill="none" stroke="#f6ead6" stroke-width="17"/>
<path d="M98 178H302Q300 318 244 326H156Q100 318 98 178Z" fill="#f6ead6"/>
<path d="M98 178H302Q301 226 292 256H108Q99 226 98 178Z" fill="#fff" opacity=".35"/>
<ellipse cx="200" cy="180" rx="102" ry="18" fill="#dccbb0"/><ellipse cx="200" cy="183" rx="88" ry="13" fill="#a4592b"/>
<g fill="none" stroke="#fff" stroke-width="8" stroke-linecap="round" opacity=".55">
<path d="M164 146q-20-26 0-52t0-52M202 140q-20-26 0-52t0-52M240 146q-20-26 0-52t0-52"/></g>
"""
TEAPOT: Final = """
<ellipse cx="200" cy="332" rx="150" ry="15" fill="#0003"/>
<path d="M296 214q66-38 92-92" fill="none" stroke="#e9c7a0" stroke-width="26" stroke-linecap="round"/>
<path d="M108 210q-84-18-76 46 8 50 88 34" fill="none" stroke="#e9c7a0" stroke-width="18"/>
<path d="M200 140c96 0 124 60 118 112-5 46-54 78-118 78S87 298 82 252c-6-52 22-112 118-112Z" fill="#f1d9b8"/>
<path d="M200 140c96 0 124 60 118 112l-236 0c-6-52 22-112 118-112Z" fill="#fff" opacity=".25"/>
<path d="M138 146q62-44 124 0Z" fill="#e0b98b"/><circle cx="200" cy="112" r="15" fill="#b9562b"/>
<path d="M150 244q50 40 100 0" fill="none" stroke="#b9562b" stroke-width="7" stroke-linecap="round"/>
"""
LAMP: Final = """
<path d="M140 150L30 330H370L260 150Z" fill="#ffe2a0" opacity=".28"/>
<ellipse cx="200" cy="332" rx="110" ry="13" fill="#0004"/>
<path d="M200-200V70" stroke="#0f1530" stroke-width="6"/>
<path d="M158 66H242L284 152H116Z" fill="#d8654a"/><path d="M158 66H186L160 152H116Z" fill="#fff" opacity=".18"/>
<ellipse cx="200" cy="152" rx="84" ry="12" fill="#ffedc2"/>
<path d="M200 306Q144 276 72 296V326Q144 306 200 332Q256 306 328 326V296Q256 276 200 306Z" fill="#f6ead6"/>
<path d="M200 306V332" stroke="#b9a98f" stroke-width="4"/>
<path d="M96 300q50-8 88 8M304 300q-50-8-88 8" fill="none" stroke="#cdbb9d" stroke-width="3"/>
"""
LANTERN: Final = """
<circle cx="200" cy="216" r="150" fill="#ffd37a" opacity=".22"/><ellipse cx="200" cy="334" rx="96" ry="12" fill="#0004"/>
<path d="M140 84q60-92 120 0" fill="none" stroke="#2b2622" stroke-width="9"/>
<path d="M148 84H252L272 122H128Z" fill="#3b322c"/><path d="M136 122H264V306H136Z" fill="#fff3d0" opacity=".5"/>
<path d="M136 122V306M264 122V306M200 122V148" stroke="#3b322c" stroke-width="9"/>
<path d="M120 304H280V330H120Z" fill="#3b322c"/><path d="M176 232H224V304H176Z" fill="#f6ead6"/>
<path d="M200 148q36 48 0 84-36-36 0-84Z" fill="#f39a2b"/><path d="M200 184q16 26 0 48-16-22 0-48Z" fill="#fff1b8"/>
"""
CANDLE: Final = """
<circle cx="200" cy="110" r="110" fill="#ffd37a" opacity=".25"/><ellipse cx="200" cy="334" rx="118" ry="13" fill="#0004"/>
<path d="M112 190H288V316Q288 332 272 332H128Q112 332 112 316Z" fill="#c98b5b"/>
<path d="M112 190H150V332H128Q112 332 112 316Z" fill="#fff" opacity=".16"/>
<ellipse cx="200" cy="190" rx="88" ry="18" fill="#f6ead6"/><path d="M200 190V158" stroke="#2b2622" stroke-width="5"/>
<path d="M200 76q34 50 0 88-34-38 0-88Z" fill="#f39a2b"/><path d="M200 112q16 28 0 50-16-22 0-50Z" fill="#fff1b8"/>
<path d="M146 236H254V290H146Z" fill="#f6ead6"/><path d="M164 256H236M176 272H224" stroke="#8f4024" stroke-width="5"/>
"""
BLANKET: Final = """
<ellipse cx="200" cy="334" rx="160" ry="13" fill="#0003"/>
<rect x="60" y="262" width="280" height="70" rx="34" fill="#8f4024"/><rect x="60" y="262" width="280" height="70" rx="34" fill="#fff" opacity=".06"/>
<rect x="72" y="196" width="256" height="70" rx="34" fill="#e0a458"/><rect x="64" y="130" width="272" height="70" rx="34" fill="#f1e3cc"/>
<g stroke="#b9562b" stroke-width="6" opacity=".7"><path d="M120 132V198M150 131V199M250 131V199M280 132V198"/></g>
<g stroke="#6b2f17" stroke-width="5" opacity=".6"><path d="M110 264V330M140 263V331M260 263V331M290 264V330"/></g>
<g stroke="#fff" stroke-width="4" opacity=".5"><path d="M96 231H304"/></g>
<g stroke="#f1e3cc" stroke-width="5" stroke-linecap="round"><path d="M84 204v16M102 206v18M120 206v18M138 206v18"/></g>
"""
BOOTS: Final = """
<ellipse cx="204" cy="334" rx="160" ry="13" fill="#0003"/>
<g id="b"><path d="M204 92H282V214Q342 232 352 282V306H204Z" fill="#7a4424"/>
<path d="M204 92H282V128H204Z" fill="#d9b07c"/><path d="M200 304H356V324Q356 332 346 332H210Q200 332 200 324Z" fill="#2f1b10"/>
<g stroke="#f6ead6" stroke-width="5" stroke-linecap="round"><path d="M244 160H280M244 184H282M250 208H292"/></g></g>
<g transform="translate(-150 0)"><path d="M204 92H282V214Q342 232 352 282V306H204Z" fill="#8f5230"/>
<path d="M204 92H282V128H204Z" fill="#e6c391"/><path d="M200 304H356V324Q356 332 346 332H210Q200 332 200 324Z" fill="#3a2315"/>
<g stroke="#f6ead6" stroke-width="5" stroke-linecap="round"><path d="M244 160H280M244 184H282M250 208H292"/></g></g>
"""
BOOKS: Final = """
<ellipse cx="200" cy="334" rx="150" ry="13" fill="#0003"/>
<rect x="66" y="286" width="268" height="46" rx="6" fill="#28475c"/><rect x="82" y="244" width="232" height="42" rx="6" fill="#c8492c"/>
<rect x="74" y="206" width="244" height="38" rx="6" fill="#e0a458"/>
<g transform="rotate(-9 200 180)"><rect x="92" y="164" width="220" height="36" rx="6" fill="#3f6b52"/><rect x="112" y="176" width="90" height="10" fill="#f6ead6" opacity=".8"/></g>
<g fill="#f6ead6" opacity=".85"><rect x="92" y="303" width="110" height="12"/><rect x="108" y="259" width="84" height="11"/><rect x="100" y="219" width="120" height="10"/></g>
<path d="M262 152c-10-50 18-84 18-84s28 34 18 84Z" fill="#6c8f4e"/><path d="M280 70V154" stroke="#47662f" stroke-width="4"/>
"""
BASKET: Final = """
<ellipse cx="200" cy="334" rx="140" ry="13" fill="#0003"/>
<path d="M96 214Q110 60 200 60T304 214" fill="none" stroke="#a9743f" stroke-width="14"/>
<circle cx="148" cy="196" r="40" fill="#c8492c"/><circle cx="212" cy="186" r="44" fill="#d9772f"/><circle cx="262" cy="200" r="34" fill="#9db35a"/>
<path d="M148 158q6-22 22-26M212 144q4-20 18-26" fill="none" stroke="#4b3320" stroke-width="5"/>
<path d="M72 210H328L300 332H100Z" fill="#cf9a5b"/>
<g stroke="#a9743f" stroke-width="7"><path d="M84 246H316M92 284H308M130 212L144 330M176 212L182 330M224 212L218 330M270 212L256 330"/></g>
<rect x="64" y="202" width="272" height="20" rx="10" fill="#b98148"/>
"""
CHAIR: Final = """
<ellipse cx="200" cy="338" rx="130" ry="12" fill="#0003"/>
<g stroke="#7a4b28" stroke-width="14" stroke-linecap="round"><path d="M120 56L108 334M280 56L292 334M128 250L116 330M272 250L284 330"/></g>
<path d="M118 60H282L284 118H116Z" fill="#a9693a"/><path d="M116 134H284L285 162H115Z" fill="#a9693a"/>
<path d="M104 226H296L308 262H92Z" fill="#c8874f"/><path d="M108 212q92-30 184 0l6 18H102Z" fill="#e0c9a2"/>
<path d="M112 300H288" stroke="#7a4b28" stroke-width="9"/>
"""
SIGNPOST: Final = """
<ellipse cx="200" cy="336" rx="80" ry="10" fill="#0003"/>
<path d="M192 60H212V336H192Z" fill="#6b4528"/><path d="M188 60L202 40 216 60Z" fill="#6b4528"/>
<path d="M120 84H304L336 112 304 140H120Z" fill="#f1e3cc"/><path d="M284 164H104L70 192 104 220H284Z" fill="#e0a458"/>
<g fill="none" stroke="#5f2d1d" stroke-width="7" stroke-linecap="round"><path d="M148 112H270M130 192H256"/></g>
<g fill="#6c8f4e"><path d="M150 336q-40-44-20-84 26 30 20 84ZM250 336q44-38 26-78-28 24-26 78Z"/><path d="M168 336q-12-50 8-74 14 36-8 74Z" fill="#8fae63"/></g>
"""
LETTER: Final = """
<ellipse cx="200" cy="336" rx="150" ry="12" fill="#0003"/>
<path d="M104 60H296V250H104Z" fill="#fff"/><path d="M132 100H268M132 130H268M132 160H230" stroke="#cdbb9d" stroke-width="8" stroke-linecap="round"/>
<path d="M60 170L200 262 340 170V322Q340 332 330 332H70Q60 332 60 322Z" fill="#f1d9b8"/>
<path d="M60 330L176 246M340 330L224 246" stroke="#d8b88c" stroke-width="5"/><circle cx="200" cy="262" r="24" fill="#b9562b"/>
<path d="M190 262l8 8 14-16" fill="none" stroke="#fff" stroke-width="5" stroke-linecap="round"/>
"""
GIFT: Final = """
<ellipse cx="200" cy="336" rx="140" ry="12" fill="#0003"/>
<rect x="84" y="190" width="232" height="142" rx="8" fill="#3f6b52"/><rect x="68" y="146" width="264" height="56" rx="8" fill="#4f8064"/>
<rect x="180" y="146" width="40" height="186" fill="#f1d9b8"/>
<path d="M200 146q-76 6-84-40 4-40 48-24 30 14 36 64ZM200 146q76 6 84-40-4-40-48-24-30 14-36 64Z" fill="none" stroke="#f1d9b8" stroke-width="16"/>
"""
BULB: Final = """
<ellipse cx="200" cy="336" rx="110" ry="12" fill="#0003"/>
<path d="M122 250H278L262 332H138Z" fill="#c46b42"/><rect x="110" y="228" width="180" height="34" rx="8" fill="#d27f55"/>
<path d="M200 228V120M200 190q-60-10-70-74 60 8 70 74ZM200 200q60-14 66-70-56 8-66 70Z" fill="#6c8f4e" stroke="#4f7238" stroke-width="6"/>
<path d="M200 128q-46-8-44-72 20 6 26 22 2-26 18-40 16 14 18 40 6-16 26-22 2 64-44 72Z" fill="#e58aa0"/>
"""
LOAF: Final = """
<ellipse cx="200" cy="334" rx="170" ry="13" fill="#0003"/><rect x="40" y="300" width="320" height="30" rx="10" fill="#7a4b28"/>
<path d="M70 300q-20-120 130-120t130 120Z" fill="#c98b4a"/><path d="M70 300q-8-46 14-78 100-54 232 0 22 32 14 78Z" fill="#b5733a" opacity=".5"/>
<g stroke="#f1d9b8" stroke-width="9" stroke-linecap="round"><path d="M140 212l30 50M190 202l26 56M242 206l22 50"/></g>
<path d="M318 288L388 170" stroke="#5b5f66" stroke-width="12"/><path d="M300 318L322 282" stroke="#4b3320" stroke-width="18" stroke-linecap="round"/>
"""
SUBJECTS: Final = MappingProxyType(
    {
        "tea": TEA,
        "teapot": TEAPOT,
        "lamp": LAMP,
        "lantern": LANTERN,
        "candle": CANDLE,
        "blanket": BLANKET,
        "boots": BOOTS,
        "books": BOOKS,
        "basket": BASKET,
        "chair": CHAIR,
        "signpost": SIGNPOST,
        "letter": LETTER,
        "gift": GIFT,
        "bulb": BULB,
        "loaf": LOAF,
    }
)
