// The placements of a page: found, asked for in one request, filled, and found again when the page changes.
//
// The parts of this folder share one scope; `script.py` puts them together in their order.

const SLOTS_MAX = 20;
const SHOWN_MAX = 60;
const said = new Set();
const slots = new Map(); // By element.
const handlers = []; // With the name of what they wait for.
const sheet = new CSSStyleSheet(); // Which is allowed by whatever policy a page has for styles.
sheet.replaceSync(STYLE);

let asking;
let previewing;
let turns = 0;

// Later, so that what goes wrong there is theirs, and ends nothing of ours.
function emit(type, { slug, place }, more) {
  const event = { type, slug, element: place, ...more };
  handlers.forEach(([name, handler]) => name === type && queueMicrotask(() => handler(event)));
}

function found(place) {
  const slug = place.dataset.adloom;
  if (slots.has(place) || !slug) return;
  if (!/^[a-z\d-]{1,100}$/.test(slug)) return say({ slug }, "no slug has such characters");
  try {
    const root = place.shadowRoot || place.attachShadow({ mode: "open" });
    const isFar = "lazy" in options || "lazy" in place.dataset;
    const slot = { place, slug, root, ends: [], cards: [], isFar };
    if (isFar) near.observe(place);
    root.adoptedStyleSheets = [sheet];
    slots.set(place, slot);
    return slot;
  } catch {} // An element that cannot have ads in it.
}

// What a page does otherwise is not ours, and it may do much of it.
const isOurs = ({ type, addedNodes }) =>
  type === "attributes" ||
  [...addedNodes].some((node) => node.matches && (node.matches(PLACES) || node.querySelector(PLACES)));

function scan(records) {
  slots.forEach((slot, place) => {
    if (place.isConnected && place.dataset.adloom === slot.slug) return;
    clear(slot);
    near.unobserve(place);
    slots.delete(place);
  });
  if (records && !records.some(isOurs)) return;
  const fresh = [...document.querySelectorAll(PLACES)].map(found).filter(Boolean);
  reserve(fresh);
  if (fresh[0] || !previewing) want(fresh.filter((slot) => !slot.isFar)); // A preview may name a slot that the page lacks.
}

function clear(slot) {
  slot.ends.splice(0).forEach((end) => end());
  slot.cards.splice(0).forEach(unwatch);
  slot.root.replaceChildren();
}

function want(wanted) {
  wanted.forEach((slot) => {
    slot.isWanted = true;
    slot.isFar = false;
    near.unobserve(slot.place);
  });
  asking = asking || parsed.then(inView).then(ask);
  return asking;
}

async function ask() {
  asking = 0;
  if (!isAllowed) return;
  const previews = await (previewing = previewing || askPreview());
  const turn = ++turns;
  const slugs = new Set();
  slots.forEach((slot) => {
    if (!slot.isWanted) return;
    slot.isWanted = false;
    slot.asked = turn;
    if (previews[slot.slug]) fill(slot, (slot.answer = previews[slot.slug]));
    else slugs.add(slot.slug);
  });
  const list = [...slugs];
  const requests = [];
  while (list[0]) requests.push(askFor(list.splice(0, SLOTS_MAX), turn));
  await Promise.all(requests);
}

// A signed link shows one banner in its slot, for who opens it. It has no token, so nothing of it counts.
async function askPreview() {
  const [, token] = /[?&]adloom-preview=([^&]*)/.exec(location.search) || [];
  if (!token || options.preview === "off") return {};
  const { slots: shown = {}, message } = await read("v1/preview", { token });
  let text = "not on this page";
  slots.forEach((slot) => shown[slot.slug] && (text = "nothing of it counts"));
  say({ slug: "preview" }, message || `${Object.keys(shown)}: ${text}`);
  return shown;
}

async function read(path, body) {
  try {
    return (await (await post(path, body)).json()) || {};
  } catch (error) {
    return { message: `${error}` };
  }
}

// What the other placements show, so that none shows it too while there is something else. A preview has no token.
function shownBeside(turn) {
  const shown = [];
  slots.forEach(({ asked, cards, answer }) => {
    if (asked === turn || !cards[0]) return;
    answer.banners.forEach(({ id, campaignId, trackingToken }) => {
      if (trackingToken) shown.push({ bannerId: id, campaignId: answer.delivery === "contextual" ? campaignId : null });
    });
  });
  return shown.slice(-SHOWN_MAX);
}

async function askFor(slugs, turn) {
  const url = pageUrl();
  const userId = readerId();
  const canonicalUrl = (document.querySelector("link[rel=canonical]") || {}).href;
  const shown = shownBeside(turn);
  const asked = { url, canonicalUrl, slots: slugs, context: contextOf(userId), userId, shown };
  const body = await read("v1/serve/page", asked);
  const page = body.page || {};
  if (page.reclassifyInMs <= 0) tellText(page.url, url);
  slots.forEach((slot) => {
    if (!isAllowed || slot.asked !== turn || !slugs.includes(slot.slug)) return;
    const answer = (body.slots || {})[slot.slug] || body;
    slot.answer = { ...answer, page };
    let { message } = answer;
    try {
      if (answer.banners) return fill(slot, answer);
    } catch (error) {
      message = `${error}`; // Of this slot: the others are filled.
    }
    say(slot, message);
    emit("error", slot, { message });
  });
}

// To who makes the page, once. ?adloom-debug shows more.
function say({ slug }, text) {
  const line = `Adloom: ${slug}: ${text}`;
  if (!said.has(line)) console.info(line);
  said.add(line);
}

function fill(slot, { placement, banners, requestId, reason }) {
  const { layout = placement.layoutType, format } = slot.place.dataset;
  const instead = !banners[0] && web(placement.fallbackPlaceholderUrl);
  clear(slot);
  settle(slot, (banners[0] || instead) && layout);
  if (!banners[0]) {
    if (instead) slot.root.append(make("img", { className: "media", alt: "", src: instead }));
    say(slot, `empty: ${reason}`);
    emit("empty", slot, { reason });
    return;
  }
  const close = () => {
    slot.isClosed = true;
    clear(slot);
    emit("close", slot);
  };
  let hasShown;
  slot.hasShown = new Promise((resolve) => (hasShown = resolve));
  slot.cards = banners.map(({ id: bannerId, campaignId, trackingToken }, number) => {
    // The name is that of the offer's pixel: whichever way it is told, it counts once.
    const correlationId = `offer:${requestId}:${number}`;
    const seen = () => {
      if (!trackingToken) return; // A preview.
      report({ correlationId, bannerId, campaignId, placementId: placement.id, trackingToken });
      emit("impression", slot, { bannerId, campaignId });
    };
    const shown = async (card) => {
      hasShown();
      await 0; // Until the card is one of the slot's.
      if (slot.cards.includes(card)) watch(card, seen);
    };
    const clicked = (card) => {
      follow(card, seen);
      emit("click", slot, { bannerId, campaignId });
    };
    return cardOf(banners[number], format === "text", shown, clicked);
  });
  slot.root.append(arranged(slot, layout, [...slot.cards], banners, close));
  emit("filled", slot, { banners: banners.length, layout });
}

const parsed = new Promise((resolve) =>
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", resolve) : resolve(),
);

// A page in the background, or rendered ahead, may never be looked at: its offers would hold budgets, and be old when it is.
const inView = () =>
  new Promise((resolve) =>
    document.hidden ? document.addEventListener("visibilitychange", resolve, { once: true }) : resolve(),
  );

// With `data-lazy`, on the script or the element, a slot is asked for when it is a screen away from what is in view.
const near = new IntersectionObserver(
  (entries) =>
    want(
      entries
        .map(({ target, isIntersecting }) => (isIntersecting || isOver(target)) && slots.get(target))
        .filter(Boolean),
    ),
  { rootMargin: "100%" },
);

// What lies over the page is near wherever its element is, unless the element itself is lazy.
const isOver = (place) => {
  const { layout = place.dataset.adloom, lazy } = place.dataset;
  return lazy === undefined && isRendered(place) && !shapeOf(layout);
};

const called = () => [...slots.values()].filter((slot) => !slot.isFar);

const adloom = {
  on(name, handler) {
    const entry = [name, handler];
    handlers.push(entry);
    return () => handlers.splice(handlers.indexOf(entry), 1);
  },
  // What the reader has open or has closed is left alone, unless it is called by its name.
  refresh: (slug) =>
    want(
      slug
        ? [...slots.values()].filter((slot) => slot.slug === slug)
        : called().filter((slot) => !slot.isClosed && !slot.root.querySelector("[open]")),
    ),
  consent(isGiven) {
    const isNews = isGiven !== isAllowed;
    isAllowed = isGiven === true;
    if (isAllowed && isNews) want(called());
    if (!isAllowed) {
      reports = [];
      readerId();
      slots.forEach(clear);
    }
  },
  push: (call) => call(adloom),
  inspect: () => [...slots.values()],
};

// Whoever came before us has left in a list what to call.
const early = window.adloom;
window.adloom = adloom;
new MutationObserver(scan).observe(document, { attributeFilter: ["data-adloom"], childList: true, subtree: true });
gently(scan);
// An element with this name may be there instead; and what goes wrong in a call is the page's, and ends no other.
if (Array.isArray(early))
  early.forEach((call) => {
    try {
      adloom.push(call);
    } catch (error) {
      reportError(error);
    }
  });
if (/[?&]adloom-debug/.test(location.search)) 
  document.head.append(make("script", { src: `${base}tag-debug.js`, nonce: script.nonce }));
