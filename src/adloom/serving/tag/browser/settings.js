// Where the script came from, what its page allows, and what is told of the reader.

// A module has no current script. Its element is looked for; one that another module imports has none.
const script =
  document.currentScript ||
  document.querySelector("script[type=module][src*='/tag']");
const options = script.dataset;
const base = new URL(".", script.src).href;
const isFramed = window !== window.parent;
const isPrivate = () => navigator.globalPrivacyControl;
const stillness = matchMedia("(prefers-reduced-motion: reduce)");
const NAME = options.label || "Advertisement";
const ID = "adloom.id";
const PLACES = "[data-adloom]";

let isAllowed = options.consent !== "required";
let isNew;

// Text of no special type is sent to other origins without being announced first.
const post = (path, body) =>
  fetch(base + path, { method: "POST", credentials: "omit", keepalive: true, body: JSON.stringify(body) });

// The reader's random id, of this page's origin only: where the page allows it and the reader does not object.
function readerId() {
  if (options.storage !== "allowed") return;
  try {
    if (isPrivate() || !isAllowed) return localStorage.removeItem(ID);
    let id = localStorage.getItem(ID);
    if (!/^[\da-f-]{36}$/.test(id)) {
      // `crypto.randomUUID` would need a secure page.
      id = "10000000-1000-4000-8000-100000000000".replace(/[018]/g, (digit) =>
        (digit ^ (crypto.getRandomValues(new Uint8Array(1))[0] & (15 >> (digit / 4)))).toString(16),
      );
      localStorage.setItem(ID, id);
      isNew = true;
    }
    return id;
  } catch {} // The browser keeps nothing for us.
}

// What the request's own headers cannot tell. Of the page that the reader came from only its host is told.
function contextOf(id) {
  const { segment, loggedIn } = options;
  const came = !isFramed && !isPrivate() && /^https?:\/\/([\w.-]+)/.exec(document.referrer);
  return { referrer: came ? came[1] : "", segment, loggedIn, newVisitor: id && !!isNew };
}
