// The space of a placement, taken before its answer comes and kept whatever the answer is: what is above,
// below and beside it does not move while somebody looks.

const WIDE = 600;
const GLIDE_MS = 400;

// Width by height. What lies over the page, or has that in its name before the answer comes, takes no space in it.
function shapeOf(layout, width) {
  if (/popup|interstitial|sticky/.test(layout)) return;
  if (width >= WIDE) return 4;
  const narrow = { full_slider: "16/9", full_static: "16/9", half_pair: 1, quarter_grid: 1, sidebar_stack: "3/4" };
  return narrow[layout] || "6/5";
}

const isRendered = (place) => place.getClientRects()[0] && getComputedStyle(place).visibility === "visible";

const topOf = (element) => element.getBoundingClientRect().top;

function reserve(slots) {
  const wishes = slots.map((slot) => {
    const { ratio, height, layout = slot.slug } = slot.place.dataset;
    slot.width = slot.place.clientWidth;
    // In a flexible row or a centred column only its content makes an element wide, and it has none.
    if (!slot.width && shapeOf(layout, WIDE) && isRendered(slot.place)) {
      slot.place.style.setProperty("--adloom-width", "100%");
      slot.width = slot.place.clientWidth;
    }
    slot.isFixed = ratio || height || parseFloat(getComputedStyle(slot.place).minHeight);
    return slot.isFixed ? [ratio && ratio.replace(":", "/"), height] : [shapeOf(layout, slot.width)];
  });
  slots.forEach((slot, number) => take(slot, ...wishes[number]));
}

// What was painted before the script was here and has to make room glides there, and does not jump.
function gently(change) {
  const boxes = new Map();
  const moves = new Map();
  document.querySelectorAll(PLACES).forEach((place) => {
    for (let inner = place; inner.parentElement; inner = inner.parentElement)
      for (const beside of inner.parentElement.children) 
        if (beside !== inner && !boxes.has(beside)) boxes.set(beside, beside.getBoundingClientRect());
  });
  change();
  if (stillness.matches) return;
  // Only what is in view before or after: a page may have thousands of elements below it.
  boxes.forEach(({ top, bottom }, element) => {
    const by = top - topOf(element);
    if (Math.min(top, top - by) < innerHeight && Math.max(bottom, bottom - by) > 0) moves.set(element, by);
  });
  moves.forEach((by, element) => {
    // What is within something that glides glides with it.
    let outer = element.parentElement;
    while (outer && !moves.has(outer)) outer = outer.parentElement;
    const own = by - (moves.get(outer) || 0);
    if (own) element.animate({ translate: [`0 ${own}px`, "0 0"] }, GLIDE_MS);
  });
}

// By properties that the style in the shadow reads: whatever the page's own style says goes before it.
function take({ place }, ratio, height) {
  place.style.setProperty("--adloom-ratio", ratio || "auto");
  place.style.setProperty("--adloom-height", height ? `${height}px` : "auto");
}

// Now the layout is known, or that there is nothing: the space is corrected where nobody sees it move.
function settle(slot, layout) {
  if (slot.isFixed) return;
  const shape = layout && shapeOf(layout, slot.width);
  if (topOf(slot.place) >= innerHeight) take(slot, shape);
  // It was corrected when there was no ad for it; now there is one, which nobody would see.
  else if (shape && !slot.place.clientHeight) gently(() => take(slot, shape));
}
