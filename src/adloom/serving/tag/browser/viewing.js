// An ad is seen when at least half of it was in view for a whole second, a video for two, in a page that was in view too.

const SEEN_MS = 1000;
const VIDEO_SEEN_MS = 2000;
const views = new Map(); // By element: who wants to know, whether it is in view, and the running second.

const eye = new IntersectionObserver(
  (entries) =>
    entries.forEach(({ target, intersectionRatio, intersectionRect }) => {
      const view = views.get(target);
      if (!view) return;
      view.isIn = intersectionRatio >= 0.5 && intersectionRect.height > 1;
      look(view, target);
    }),
  { threshold: 0.5 },
);

function watch(card, tell) {
  if (views.has(card)) return;
  views.set(card, { tell });
  eye.observe(card);
}

function unwatch(card) {
  const view = views.get(card);
  if (!view) return;
  clearTimeout(view.second);
  eye.unobserve(card);
  views.delete(card);
}

function look(view, card) {
  clearTimeout(view.second);
  const isVideo = card.classList.contains("video");
  if (view.isIn && !document.hidden) view.second = setTimeout(see, isVideo ? VIDEO_SEEN_MS : SEEN_MS, view, card);
}

// Who follows an ad has seen it, however little of it was in view, or short.
function follow(card, tell) {
  watch(card, tell);
  see(views.get(card), card);
}

function see(view, card) {
  // It stays among the views: a picture that comes again, in another size, is not seen again.
  eye.unobserve(card);
  clearTimeout(view.second);
  view.isIn = false;
  if (!view.isSeen) view.tell();
  view.isSeen = true;
}

document.addEventListener("visibilitychange", () => {
  views.forEach(look);
  if (document.hidden) flush();
});
