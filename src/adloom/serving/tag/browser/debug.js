// What each slot of the page got, and why, for who makes the page: loaded by the tag where the address says `adloom-debug`.
// It knows what anybody can read from the answers, and nothing else.

const REDRAW_MS = 500;
const FLASH_MS = 1500;

const SENTENCES = {
  no_demand: "No ad is booked, or bids, for this slot.",
  targeting: "Ads are there, but their rules exclude this visitor.",
  frequency: "This visitor has seen the ads as often as they allow.",
  budget: "The budgets of its ads are spent.",
  pacing: "Its ads wait, to spread their budget over the day.",
  campaign_inactive: "Its ads are not scheduled for now, or no longer run.",
  page_unknown: "Nobody has read this page yet. Its text is sent, or it will be crawled; then ads come.",
  page_stale: "What was known of this page is too old. It will be read again.",
  site_suspended: "The site is suspended.",
  warmup: "The site is warming up: its traffic is measured before ads are sold.",
  category_mismatch: "No ad fits what this page is about.",
  category_excluded: "Its ads are not to be on pages about such things.",
  size_mismatch: "No ad has the size of this slot.",
  not_approved: "Ads wait for the publisher's approval.",
  rejected: "The publisher has rejected its ads.",
  ad_product_blocked: "The publisher does not want ads for such products.",
  domain_blocked: "The publisher does not want ads that lead there.",
  site_blocked: "The advertisers do not want to be on this site.",
  below_floor: "All bids are below the least price of this slot.",
  on_page_already: "The ads that could fill it are in other slots of this page.",
};
const STYLE = `
  :host { all: initial; }
  section { position: fixed; inset: auto auto 12px 12px; z-index: 2147483647; max-width: min(560px, 90vw); max-height: 60vh; overflow: auto; padding: 12px 16px; border-radius: 8px; color: #eee; background: #1b1f24f2; font: 13px/1.45 system-ui, sans-serif; box-shadow: 0 4px 24px #0008; }
  h2 { margin: 0 24px 4px 0; font-size: 14px; }
  p { margin: 0; color: #aab; overflow-wrap: anywhere; }
  ul { margin: 8px 0 0; padding: 0; list-style: none; }
  li { padding: 6px 0; border-top: 1px solid #fff2; }
  button { all: unset; cursor: pointer; font-weight: 600; text-decoration: underline; }
  button:focus-visible { outline: 2px solid #7ab8ff; }
  .close { position: absolute; top: 8px; right: 12px; text-decoration: none; font-size: 18px; }
  .filled { color: #8fe3a0; } .empty { color: #ffd479; } .problem { color: #ff9a8d; }
`;

const element = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

const sentenceOf = (reason) => `${reason}: ${SENTENCES[reason] || "see the guide."}`;

// A word for the state of a slot, and sentences about it.
function describe({ answer }) {
  if (!answer) return ["empty", ["Not asked for yet."]];
  if (!answer.banners) return ["problem", [answer.message]];
  if (answer.expiresAt) return ["filled", [`Preview by a signed link, until ${answer.expiresAt}: nothing of it counts.`]];
  const kind = `Filled by: ${answer.delivery}.`;
  if (!answer.banners.length) return ["empty", [kind, sentenceOf(answer.reason)]];
  const ads = answer.banners.map(({ title, id, campaignId, category }) => {
    const by = category ? `, chosen by the page's category "${category.name}"` : "";
    return `Ad "${title}" (banner ${id}, campaign ${campaignId})${by}.`;
  });
  return ["filled", [kind, ...ads]];
}

function show(place) {
  place.scrollIntoView({ block: "center" });
  place.animate({ outline: ["4px solid #7ab8ff", "4px solid transparent"] }, FLASH_MS);
}

const host = element("div", {});
const root = host.attachShadow({ mode: "open" });
const sheet = new CSSStyleSheet();
sheet.replaceSync(STYLE);
root.adoptedStyleSheets = [sheet];
const list = element("ul", {});
const page = element("p", {});
const close = element("button", { className: "close", ariaLabel: "Close", textContent: "×" });
root.append(element("section", { ariaLabel: "Adloom" }, close, element("h2", { textContent: "Adloom on this page" }), page, list));
document.documentElement.append(host);

let drawn;

function draw() {
  const found = window.adloom.inspect();
  const known = found.map(({ answer }) => answer && answer.page).find((one) => one && one.url);
  const about = known ? `Known as ${known.url}: ${known.state}.` : "No slot depends on what the page says.";
  const lines = found.map((slot) => [slot.slug, ...describe(slot)]);
  const now = JSON.stringify([about, lines]);
  if (now === drawn) return;
  drawn = now;
  page.textContent = about;
  list.replaceChildren(
    ...lines.map(([slug, state, sentences], number) =>
      element(
        "li",
        {},
        element("button", { textContent: slug, onclick: () => show(found[number].place) }),
        element("span", { className: state, textContent: ` ${state}` }),
        ...sentences.map((textContent) => element("p", { textContent })),
      ),
    ),
  );
}

const redrawing = setInterval(draw, REDRAW_MS);
close.onclick = () => {
  clearInterval(redrawing);
  host.remove();
};
draw();
