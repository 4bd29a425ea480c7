// The ways in which the banners of a placement are put together. Each gives what goes into the placement,
// and leaves in `slot.ends` what has to be ended when that goes.

const DWELL_MS = 6000;
const TURN_MS = 500;

const button = (className, ariaLabel, textContent, onclick) =>
  make("button", { type: "button", className, ariaLabel, textContent, onclick });

const group = (className, ...children) => make("div", { role: "group", className, ariaLabel: NAME }, ...children);

function slider(slot, cards, banners) {
  const track = make("div", { className: "track" }, ...cards);
  let at = 0;
  let isPaused = stillness.matches;
  let dwelling;

  // It rests as long as somebody is at it, or nobody is here.
  const rest = () => {
    clearTimeout(dwelling);
    dwelling = isPaused || setTimeout(() => (isInUse() ? rest() : turn(1)), DWELL_MS);
  };
  const isInUse = () => document.hidden || frame.matches(":hover, :focus-within");
  const turn = (by) => {
    at = (at + by + cards.length) % cards.length;
    track.style.transitionDuration = `${stillness.matches ? 0 : banners[at].transitionDurationMs ?? TURN_MS}ms`;
    track.style.transform = `translateX(${-100 * at}%)`;
    cards.forEach((card, number) => (card.inert = number !== at));
    rest();
  };
  const pause = button("", "", "", () => set(!isPaused));
  const set = (paused) => {
    isPaused = paused;
    pause.ariaLabel = paused ? "Play" : "Pause";
    pause.textContent = paused ? "▶" : "❚❚";
    rest();
  };
  const before = button("", "Previous", "‹", () => turn(-1));
  const after = button("", "Next", "›", () => turn(1));
  const frame = group("frame", make("div", { className: "controls" }, before, pause, after), track);
  slot.ends.push(() => clearTimeout(dwelling));
  turn(0);
  set(isPaused);
  return frame;
}

// One at a time: when one is closed, the next may open.
let overlay = Promise.resolve();

function dialog(slot, layout, cards, close) {
  const end = button("close", "Close", "×", () => box.close());
  const box = make("dialog", { className: layout, ariaLabel: NAME, onclose: close }, end, ...cards);
  // In braces: a handler that gives false would keep a link from being followed.
  box.onclick = (event) => {
    if (event.target === box) box.close();
  };
  box.onkeydown = (event) => {
    if (event.key === "Tab") stayWithin(box, slot.root, event);
  };
  // A dialog without anything to see, or that the page hides, would still keep its visitor from the page.
  slot.hasShown.then(() => {
    overlay = overlay.then(
      () =>
        new Promise((done) => {
          slot.ends.push(done);
          if (box.isConnected && isRendered(slot.place)) box.showModal();
          else done();
        }),
    );
  });
  return box;
}

// The page behind a dialog cannot be reached anyway; this keeps the browser's own bars out of the round too.
function stayWithin(box, root, event) {
  const reachable = box.querySelectorAll("button, a, video, iframe");
  const edges = [reachable[0], reachable[reachable.length - 1]];
  if (root.activeElement !== edges[+!event.shiftKey]) return;
  event.preventDefault();
  edges[+event.shiftKey].focus();
}

function arranged(slot, layout, cards, banners, close) {
  if (layout === "full_slider" && cards[1]) return slider(slot, cards, banners);
  const grid = make("div", { className: "grid" }, ...cards);
  if (layout === "popup" || layout === "interstitial") return dialog(slot, layout, [grid], close);
  return group(`frame ${layout}`, grid, layout === "sticky_bar" && button("close", "Close", "×", close));
}
