// Telling what was seen: soon, again where nobody took it, and in any case before the page goes.

const REPORTS_MAX = 100;
const GATHER_MS = 100;
const RETRY_MS_MAX = 60000;
const REPORTS = "banners/events/batch";

// In a frame of ours only we know the page around it, and the headers of our requests do not tell.
const around = isFramed && base.startsWith(`${location.origin}/`) && ((location.ancestorOrigins || [])[0] || document.referrer);

let reports = [];
let tries = 0;
let timer;

function report(seen) {
  reports = [...reports, { type: "impression", ...seen, userId: readerId(), pageUrl: around ? around.split("/", 3).join("/") : undefined }].slice(-REPORTS_MAX);
  later();
}

function later() {
  timer = timer || setTimeout(send, Math.min(GATHER_MS * 4 ** tries, RETRY_MS_MAX));
}

async function send() {
  const events = reports;
  try {
    // Consent that was withdrawn meanwhile leaves nothing to send.
    const { status } = events.length ? await post(REPORTS, { events }) : {};
    tries = status > 499 || status === 429 ? tries + 1 : 0;
    if (!tries) reports = reports.filter((one) => !events.includes(one));
  } catch {
    tries++;
  }
  timer = 0;
  if (reports.length) later();
}

// What is told twice counts once. Some visitors have switched beacons off, and a browser may have no room for one.
function flush() {
  const beacon = (body) => navigator.sendBeacon && navigator.sendBeacon(base + REPORTS, body);
  if (reports.length && !beacon(JSON.stringify({ events: reports }))) send();
}

addEventListener("pagehide", flush);
