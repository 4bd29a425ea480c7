"""The Hedgerow: a front page, and a page for every article."""

from html import escape
from typing import Final

from adloom.sample.content.articles import ARTICLES, Article
from adloom.sample.pages.markup import SamplePage, image, slot

HOUSE: Final = "hedgerow"
FRONT: Final = "/sample"
SECTIONS: Final = ("Outside", "Walks", "Kitchen", "Reading", "Inside")
FRONT_SLOTS: Final = ("hedgerow-top", "hedgerow-between", "hedgerow-yours", "hedgerow-aside", "hedgerow-bar")
ARTICLE_SLOTS: Final = ("hedgerow-article-top", "hedgerow-article-aside")
LONG_SLOTS: Final = ("hedgerow-article-top", "hedgerow-article-aside", "hedgerow-long-read")
FOOTER: Final = """
<footer><div class="page"><p><b>The Hedgerow</b> is a magazine for people who walk slowly. It is made up, as is
<a href="/sample/shop">Meadow &amp; Oak</a>: both are the sample of Adloom, served and filled by this installation.
Their pictures are drawn by it too. Its readers are simulated; you are the exception.</p>
<p><code>adloom sample remove</code> takes all of it away. Nobody is followed on these pages, and no cookie is set.</p>
</div></footer>"""


def magazine_pages() -> list[SamplePage]:
    return [_front(), *(_article(article) for article in ARTICLES)]


def _header(current: str | None = None) -> str:
    nav = "".join(
        f'<a href="{_first_of(section).path}"{" aria-current=page" if section == current else ""}>{section}</a>'
        for section in SECTIONS
    )
    return f"""<a class="skip" href="#main">To the text</a><header class="masthead"><div class="page">
<p class="small edition"><span>Issue 48</span><span>A magazine for people who walk slowly</span><span>November</span></p>
<p class="name"><a href="{FRONT}">The Hedgerow</a></p>
<nav class="small" aria-label="Sections">{nav}<a href="/sample/shop">Shop</a></nav></div></header>"""


def _first_of(section: str) -> Article:
    return next(article for article in ARTICLES if article.section == section)


def _front() -> SamplePage:
    lead, *others = ARTICLES
    cards = [_card(article) for article in others]
    body = f"""{_header()}<main id="main" class="page">
{slot("hedgerow-top")}
<div class="columns"><div>
<article class="lead"><a class="frame" href="{lead.path}">{image(lead.picture(1200, 675), is_first=True)}</a>
<p class="small kicker">{lead.section}</p><h1><a href="{lead.path}">{escape(lead.title)}</a></h1>
<p class="stand">{escape(lead.lead)}</p>{_byline(lead)}</article>
<div class="cards">{cards[0]}{cards[1]}{slot("hedgerow-between")}{cards[2]}{cards[3]}{slot("hedgerow-yours")}
<section class="card letter wide"><p class="small kicker">From the editor</p><h3>Two lines of HTML</h3>
<p>Every ad on these pages is a <code>&lt;div&gt;</code> with a name, and one script for all of them. Look at the
source: it is what any publisher would write.</p></section></div>
</div><aside>{slot("hedgerow-aside")}{_most_read()}</aside></div>
</main>{FOOTER}{slot("hedgerow-bar")}"""
    return SamplePage(path=FRONT, title="The Hedgerow", house=HOUSE, body=body, slots=FRONT_SLOTS)


def _most_read() -> str:
    items = "".join(
        f'<li><a href="{article.path}">{escape(article.title)}</a></li>' for article in reversed(ARTICLES)
    )
    return f'<section class="read"><h2 class="small kicker">Most read</h2><ol>{items}</ol></section>'


def _card(article: Article) -> str:
    return f"""<article class="card"><a class="frame" href="{article.path}">{image(article.picture(600, 400))}</a>
<p class="small kicker">{article.section}</p><h3><a href="{article.path}">{escape(article.title)}</a></h3>
<p>{escape(article.lead)}</p></article>"""


def _byline(article: Article) -> str:
    return f'<p class="small byline">{escape(article.author)} · {article.minutes} minutes</p>'


def _article(article: Article) -> SamplePage:
    first, *others = article.text
    middle = len(others) // 2
    before, after = (
        "".join(f"<p>{escape(text)}</p>" for text in part) for part in (others[:middle], others[middle:])
    )
    more = "".join(_card(other) for other in ARTICLES if other is not article)
    body = f"""{_header(article.section)}<main id="main" class="page">
{slot("hedgerow-article-top")}
<div class="columns"><article class="story"><p class="small kicker">{article.section}</p>
<h1>{escape(article.title)}</h1><p class="stand">{escape(article.lead)}</p>{_byline(article)}
<div class="frame">{image(article.picture(1200, 675), is_first=True)}</div>
<p class="first">{escape(first)}</p>{before}<hr>{after}</article>
<aside>{slot("hedgerow-article-aside")}{_most_read()}</aside></div>
<section class="more"><h2 class="small kicker">More to read</h2><div class="cards four">{more}</div></section>
</main>{FOOTER}{slot("hedgerow-long-read") if article.is_long else ""}"""
    return SamplePage(
        path=article.path,
        title=f"{article.title} · The Hedgerow",
        house=HOUSE,
        body=body,
        slots=LONG_SLOTS if article.is_long else ARTICLE_SLOTS,
    )
