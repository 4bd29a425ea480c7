// A page with one placement, filled by the tag itself: whatever it asks for is answered with what the address says.
(() => {
  "use strict";
  const SLUG = "preview";
  const bad = document.getElementById("bad");
  const page = document.querySelector(".page");

  const said = () => JSON.parse(decodeURIComponent(location.hash.slice(1)) || '{"banners": []}');
  let scene = said();

  // Nothing leaves this page: the tag gets its answer from here, and its reports go nowhere.
  window.fetch = async () => ({ json: async () => ({ slots: { [SLUG]: answer() } }) });
  navigator.sendBeacon = () => true;

  function answer() {
    const { banners, layout, instead } = scene;
    return {
      placement: { id: SLUG, slug: SLUG, layoutType: layout, fallbackPlaceholderUrl: instead || null },
      banners: banners.map((banner, number) => ({ ...banner, id: `${number}`, clickUrl: banner.ctaUrl, impressionUrl: "" })),
      requestId: SLUG,
    };
  }

  // A picture that does not come is said, because the tag leaves it out without a word.
  function look() {
    bad.textContent = "";
    const asked = location.hash;
    const addresses = scene.banners.flatMap(({ primaryImageUrl, mobileImageUrl }) => [primaryImageUrl, mobileImageUrl]);
    const known = addresses.filter((address) => /^https?:/.test(address));
    const isBare = !known[0] && !scene.banners.some(({ videoUrl, mediaVariants }) => videoUrl || mediaVariants?.html);
    bad.className = isBare ? "nothing" : "";
    if (isBare) bad.textContent = scene.words?.nothing ?? "";
    for (const address of new Set(known)) {
      const image = new Image();
      image.onerror = () => {
        if (location.hash === asked) bad.textContent = `${scene.words?.bad ?? ""} ${address}`;
      };
      image.src = address;
    }
  }

  function set() {
    const { layout } = scene;
    const place = document.createElement("div");
    place.dataset.adloom = SLUG;
    place.dataset.layout = layout;
    const isAside = /sidebar/.test(layout);
    page.classList.toggle("aside", isAside);
    const [before, after] = page.querySelectorAll(".text");
    before.innerHTML = "<i></i>".repeat(layout === "inline_card" ? 5 : 0);
    after.innerHTML = "<i></i>".repeat(25);
    before.after(place);
  }

  addEventListener("hashchange", () => {
    const { layout } = scene;
    scene = said();
    if (scene.layout !== layout) location.reload();
    look();
    window.adloom?.refresh(SLUG);
  });

  // The tag chooses the ratio of a placement by the width that it finds: a frame may get its own after it has loaded.
  addEventListener("resize", () => location.reload());

  set();
  look();
  const tag = document.createElement("script");
  tag.src = new URL("preview/tag.js", location.href).href;
  document.head.append(tag);
})();
