"""The look of the sample's pages."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ink: #2b2622; --paper: #fbf8f4; --quiet: #6b6159; --line: #e3dbd2; --mark: #a8481f;
  --room: #efe8df; --card: #fff; --serif: Georgia, "Liberation Serif", serif; --sans: system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { :root { --ink: #eee7df; --paper: #1c1917; --quiet: #a89c91; --line: #39332e;
  --mark: #e58a5c; --room: #26221f; --card: #24201d; } }
* { box-sizing: border-box; }
body { margin: 0; font: 18px/1.65 var(--serif); color: var(--ink); background: var(--paper); }
body.oak { font: 16px/1.6 var(--sans); }
.page { max-width: 72rem; margin: 0 auto; padding: 0 1.25rem; }
a { color: inherit; } p a { color: var(--mark); } img { display: block; width: 100%; height: auto; }
h1, h2, h3 { line-height: 1.15; letter-spacing: -.012em; text-wrap: balance; font-family: var(--serif); }
h1 a, h3 a { text-decoration: none; } h1 a:hover, h3 a:hover { text-decoration: underline; text-decoration-thickness: 1px; }
:focus-visible { outline: 3px solid var(--mark); outline-offset: 3px; border-radius: 3px; }
.small { font: 14px/1.5 var(--sans); color: var(--quiet); }
.kicker { margin: .9rem 0 .35rem; font-size: 12px; font-weight: 600; letter-spacing: .09em; text-transform: uppercase;
  color: var(--mark); }
.frame { display: block; overflow: hidden; border-radius: .5rem; background: var(--room); }
.frame img { object-fit: cover; transition: transform .5s; } a:hover > .frame img, a.frame:hover img { transform: scale(1.02); }
@media (prefers-reduced-motion: reduce) { .frame img { transition: none; } a:hover img { transform: none !important; } }
.skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; top: .5rem; z-index: 2; padding: .3rem .8rem; background: var(--card); }
code { font: .82em ui-monospace, "Liberation Mono", monospace; }
footer { margin-top: 3.5rem; padding: 1.5rem 0 6rem; border-top: 1px solid var(--line); font: 14px/1.6 var(--sans); color: var(--quiet); }
footer p { max-width: 46rem; margin: .5rem 0; }

/* The magazine. */
.masthead { border-bottom: 3px double var(--line); } .masthead .page { padding-top: .9rem; }
.edition { display: flex; justify-content: space-between; gap: 1rem; margin: 0; }
.masthead .name { margin: .5rem 0 .7rem; text-align: center; font-size: clamp(2.6rem, 7vw, 4.6rem); line-height: 1; letter-spacing: -.03em; }
.masthead .name a { color: inherit; text-decoration: none; } .masthead nav { display: flex; flex-wrap: wrap; justify-content: center;
  gap: 0 1.6rem; padding: .45rem 0; border-top: 1px solid var(--line); }
nav a { padding: .35rem 0; text-decoration: none; } nav a:hover, nav a[aria-current] { color: var(--mark); text-decoration: underline; text-underline-offset: .35em; }
.columns { display: grid; gap: 2rem 2.75rem; margin-top: 1.75rem; } .columns > * { min-width: 0; }
@media (min-width: 60rem) { .columns { grid-template-columns: minmax(0, 1fr) 19rem; } }
.lead h1 { margin: 0; font-size: clamp(2rem, 4.6vw, 3.1rem); } .lead .frame { aspect-ratio: 16 / 9; }
.stand { margin: .6rem 0; font-size: 1.2rem; line-height: 1.45; color: var(--quiet); } .byline { margin: .4rem 0 0; }
.cards { display: grid; gap: 2rem 1.75rem; margin-top: 2.25rem; padding-top: 2rem; border-top: 1px solid var(--line); }
@media (min-width: 40rem) { .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
@media (min-width: 60rem) { .cards.four { grid-template-columns: repeat(4, minmax(0, 1fr)); } }
.card h3 { margin: 0 0 .35rem; font-size: 1.4rem; } .card p:not(.small) { margin: 0; font-size: 1rem; line-height: 1.5; color: var(--quiet); }
.four .card h3 { font-size: 1.15rem; } .four .card p:not(.small) { display: none; } .card .frame { aspect-ratio: 3 / 2; }
.letter { align-self: start; padding: 1.1rem 1.35rem 1.35rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }
@media (min-width: 40rem) { .wide { grid-column: span 2; } } .letter .kicker { margin-top: 0; }
aside { display: flex; flex-direction: column; gap: 2rem; }
.read ol { margin: 0; padding: 0 0 0 1.4rem; } .read li { padding: .5rem 0 .5rem .3rem; line-height: 1.35; border-bottom: 1px solid var(--line); }
.read li::marker { color: var(--mark); } .read a { text-decoration: none; } .read a:hover { text-decoration: underline; }
.story h1 { margin: 0; font-size: clamp(2.2rem, 5vw, 3.4rem); } .story .frame { aspect-ratio: 16 / 9; margin: 1.5rem 0; }
.story > p:not(.small, .stand) { max-width: 38rem; margin: 1.05rem 0; font-size: 1.1rem; }
.story hr { width: 4rem; margin: 2rem 0; border: 0; border-top: 1px solid var(--line); }
.first::first-letter { float: left; padding: .06em .12em 0 0; font-size: 3.4em; line-height: .82; color: var(--mark); }
.more { margin-top: 3rem; } .more .cards { margin-top: .75rem; padding-top: 1.25rem; }

/* The shop. */
.notice { margin: 0; padding: .35rem 1rem; text-align: center; color: #fbf8f4; background: #3d4a37; }
.counter { border-bottom: 1px solid var(--line); } .counter .page { display: flex; flex-wrap: wrap; align-items: center;
  justify-content: space-between; gap: .25rem 2rem; padding-top: .9rem; padding-bottom: .9rem; }
.counter .name { font: 1.9rem/1 var(--serif); letter-spacing: -.02em; text-decoration: none; } .counter i { color: var(--mark); }
.counter nav { display: flex; flex-wrap: wrap; align-items: center; gap: 0 1.35rem; }
.bag { padding: .3rem .9rem !important; border: 1px solid var(--line); border-radius: 2rem; }
.oak h2 { margin: 3rem 0 1rem; font-size: 1.7rem; } .oak h1 { margin: 0; font-size: clamp(2.1rem, 4.5vw, 3.2rem); }
.button { display: inline-block; padding: .6rem 1.4rem; border-radius: 2rem; font-weight: 600; text-decoration: none; color: #fff !important; background: #3d4a37; }
.button:hover { background: #566a4d; }
.window { display: grid; gap: 1.75rem 3rem; align-items: center; padding: 2rem 0 2.5rem; } .window p { font-size: 1.1rem; color: var(--quiet); }
.window .kicker { font-size: 12px; color: var(--mark); } .window .frame { aspect-ratio: 3 / 2; }
@media (min-width: 52rem) { .window { grid-template-columns: 5fr 6fr; } }
.shelves { display: grid; gap: 1.25rem; margin-bottom: 2.5rem; } .shelf, .tile { display: flex; flex-direction: column; gap: .15rem; text-decoration: none; }
.shelf .frame { aspect-ratio: 3 / 2; margin-bottom: .5rem; } .shelf b { font: 1.3rem/1.3 var(--serif); }
@media (min-width: 40rem) { .shelves { grid-template-columns: repeat(3, minmax(0, 1fr)); } }
.tiles { display: grid; gap: 1.75rem 1.25rem; grid-template-columns: repeat(2, minmax(0, 1fr)); }
@media (min-width: 52rem) { .tiles { grid-template-columns: repeat(4, minmax(0, 1fr)); } .tiles.three { grid-template-columns: repeat(3, minmax(0, 1fr)); } }
.tile .frame { aspect-ratio: 1; margin-bottom: .5rem; } .tile .price { font-weight: 600; }
.title { padding: 2.25rem 0 1.5rem; } .title p { max-width: 38rem; color: var(--quiet); font-size: 1.1rem; } .crumbs { margin: 1.1rem 0; }
.product { display: grid; gap: 2rem 3rem; } .product .frame { aspect-ratio: 1; align-self: start; } .product .price { margin: .4rem 0; font-size: 1.5rem; }
@media (min-width: 52rem) { .product { grid-template-columns: minmax(0, 6fr) minmax(0, 5fr); } }

/* The room of a slot before its ad is there, so that nothing moves when it comes. */
.slot { min-width: 0; --adloom-font: var(--sans); } .full-slider, .full-static { aspect-ratio: 4; margin-top: 1.5rem; }
.sidebar-stack { aspect-ratio: 3 / 4; } .sidebar-single { aspect-ratio: 6 / 5; } .inline-card { aspect-ratio: 1; }
.half-pair { aspect-ratio: 3.6; } .quarter-grid { aspect-ratio: 4; } .product .slot { aspect-ratio: 16 / 9; margin-top: 1.75rem; }
@media (max-width: 60rem) { aside .slot { aspect-ratio: 1.9; } .story + aside { order: 2; } }
@media (max-width: 40rem) { .edition span:nth-child(2) { display: none; } .full-slider, .full-static { aspect-ratio: 16 / 9; } .half-pair { aspect-ratio: 4 / 5; } .quarter-grid { aspect-ratio: 4 / 5; }
  aside .slot.sidebar-stack { aspect-ratio: 3 / 4; } aside .slot.sidebar-single { aspect-ratio: 6 / 5; } }
"""
