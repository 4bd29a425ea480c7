// One banner as elements. What a banner says is text and addresses, never markup.

function make(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter(Boolean));
  return made;
}

// An address that may be loaded or followed, or nothing.
function web(address) {
  try {
    const { protocol, href } = new URL(address);
    return /^https?:$/.test(protocol) && href;
  } catch {}
}

const written = (className, text) => text && make("span", { className, dir: "auto", textContent: text });

function textOf({ headline, subheadline, description, ctaLabel }) {
  const parts = [
    written("head", headline),
    written("sub", subheadline),
    written("more", description),
    written("call", ctaLabel),
  ].filter(Boolean);
  return parts[0] && make("span", { className: "text" }, ...parts);
}

// Variants have the name of a language or of a size of screen.
function pictureOf({ primaryImageUrl, mobileImageUrl }, variants, image) {
  const local = web(variants[navigator.language.split("-")[0]]);
  image.src = local || web(variants.desktop) || web(primaryImageUrl) || "";
  const upTo = (width, srcset) =>
    srcset && !local && make("source", { srcset, media: `(max-width: ${width}px)` });
  const mobile = upTo(599, web(mobileImageUrl) || web(variants.mobile));
  return make("picture", {}, mobile, upTo(1023, web(variants.tablet)), image);
}

// Without rights of its own: it may run and open what is clicked, and is told where clicks go.
function frameOf(address, click, title) {
  const frame = make("iframe", { className: "media", title, referrerPolicy: "no-referrer" });
  frame.sandbox = "allow-scripts allow-popups allow-popups-to-escape-sandbox";
  frame.src = `${address}#clickTag=${encodeURIComponent(click || "")}`;
  return frame;
}

// A frame that the page's policy forbids says that it has loaded, and nothing else.
document.addEventListener("securitypolicyviolation", ({ effectiveDirective, disposition, blockedURI }) => {
  if (effectiveDirective !== "frame-src" || disposition !== "enforce") return;
  slots.forEach(({ root }) =>
    root.querySelectorAll("iframe").forEach((frame) => frame.src.startsWith(blockedURI) && frame.onerror()),
  );
});

function videoOf(src, poster, ariaLabel) {
  const autoplay = !stillness.matches;
  const always = { loop: true, controls: true, muted: true, playsInline: true };
  return make("video", { className: "media", poster, ariaLabel, autoplay, ...always, src });
}

// Calls `shown` as soon as there is something to see, and `clicked` when somebody follows it.
function cardOf(banner, isText, shown, clicked) {
  const { primaryImageUrl, primaryImageAlt, videoUrl, bgColor } = banner;
  const variants = banner.mediaVariants || {};
  const card = make("div", { className: "banner" });
  const click = web(banner.ctaUrl) && web(banner.clickUrl);
  const link = make(click ? "a" : "div", { className: "link" });
  if (click) Object.assign(link, { href: click, rel: "sponsored noopener", onclick: () => clicked(card) });
  link.target = banner.ctaOpenNewTab ? "_blank" : isFramed ? "_top" : "";
  const text = textOf(banner);
  const alt = primaryImageAlt || (text ? "" : NAME);
  const html = web(variants.html);
  const video = web(videoUrl);
  const bare = () => card.classList.add("bare");
  const show = () => shown(card);
  const picture = () => {
    let spare = web(banner.fallbackPlaceholderUrl);
    const onerror = () => {
      const src = spare;
      spare = "";
      if (src) return link.firstChild.replaceWith(make("img", { className: "media", alt, onload: show, onerror, src }));
      link.firstChild.remove();
      bare();
      if (text) show();
    };
    const image = make("img", { className: "media", alt, onload: show, onerror });
    link.replaceChildren(pictureOf(banner, variants, image), text || "");
  };
  // What the page's policy or the network keeps away has the picture in its place.
  const instead = (media) => () => {
    unwatch(card);
    card.classList.remove("video");
    card.prepend(link);
    media.remove();
    picture();
  };

  card.style.backgroundColor = bgColor;
  card.append(link);
  if (isText) {
    bare();
    link.append(text || NAME);
    show();
  } else if (html) {
    const frame = frameOf(html, click, alt || NAME);
    Object.assign(frame, { onload: show, onerror: instead(frame) });
    link.replaceWith(frame);
  } else if (video) {
    const film = videoOf(video, web(primaryImageUrl) || "", alt || NAME);
    // Some browsers load nothing before somebody plays it: then its poster is what is seen.
    Object.assign(film, { onloadeddata: show, onsuspend: show, onerror: instead(film) });
    card.classList.add("video");
    card.prepend(film);
    link.append(text || written("text", click && "Visit") || "");
  } else picture();
  card.append(written(banner.label ? "label preview" : "label", banner.label || options.label || "Ad"));
  return card;
}
