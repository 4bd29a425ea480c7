// The console's own script: colours of the theme, remembered in this browser; it runs before anything is painted.
(() => {
  "use strict";
  const KEY = "adloom-theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  let focused = null;

  const chosen = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  };

  const apply = () => {
    const isDark = (chosen() ?? (system.matches ? "dark" : "light")) === "dark";
    root.dataset.theme = isDark ? "dark" : "light";
    globalThis.Quasar?.Dark?.set(isDark);
    // Charts are painted with colours of their own: the server sends them again.
    globalThis.emitEvent?.("adloom_theme");
  };

  // A picture that is pasted goes where one is dropped; text goes where the cursor is.
  addEventListener("paste", (event) => {
    const files = event.clipboardData?.files;
    const input = document.querySelector(".al-upload input[type=file]");
    if (!files?.length || !input) return;
    event.preventDefault();
    input.files = files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });

  // A page is built by scripts: without this, each click on a link would show an empty one for a moment. The picture of
  // the page before (console.css) goes when there is content.
  addEventListener("pagereveal", ({ viewTransition: transition }) => {
    if (!transition) return;
    transition.ready.catch(() => {}); // It may be over before it has begun.
    const end = () => {
      if (!document.querySelector("#content > *, .al-gate")) return;
      observer.disconnect();
      requestAnimationFrame(() => transition.skipTransition());
    };
    const observer = new MutationObserver(end);
    observer.observe(document, { childList: true, subtree: true });
    end();
  });

  // Ctrl-K, or Cmd-K: go anywhere.
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      globalThis.emitEvent?.("adloom_palette");
    }
  });

  globalThis.adloom = {
    // The present value of a colour of the theme, for charts.
    ink: (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim(),
    // The same, but see-through: areas under lines.
    wash(name, share) {
      const [red, green, blue] = adloom.ink(name).match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
      return `rgba(${red}, ${green}, ${blue}, ${share})`;
    },
    switchTheme() {
      try {
        localStorage.setItem(KEY, root.dataset.theme === "dark" ? "light" : "dark");
      } catch {
        // A browser that keeps nothing switches for this page only.
      }
      apply();
    },
    // The state of a table in the address, without a page load.
    address(query) {
      history.replaceState(history.state, "", query ? `?${query}` : location.pathname);
    },
    // What had the focus before a table was painted anew gets it again.
    refocus(selector) {
      requestAnimationFrame(() => document.querySelector(selector)?.focus());
    },
    // The same, where the server painted a list anew because of something else: what has the focus keeps it.
    restoreFocus() {
      requestAnimationFrame(() => {
        if (document.activeElement === document.body && focused) document.querySelector(focused)?.focus();
      });
    },
    reveal(selector) {
      document.querySelector(selector)?.scrollIntoView({ inline: "center", block: "nearest" });
    },
    // Text as HTML shows it: what people have named things runs nowhere.
    text: (value) => String(value ?? "").replace(/[&<>"'`]/g, (sign) => `&#${sign.charCodeAt(0)};`),
    // What a tooltip says, line by line; charts take what they are given for HTML.
    lines: (...lines) => lines.filter((line) => line).map(adloom.text).join("<br>"),
    number: (value) => Number(value).toLocaleString("en-US", { maximumFractionDigits: 2 }),
    percent: (value) => `${(Number(value) * 100).toLocaleString("en-US", { maximumFractionDigits: 2 })}%`,
    // Sums come in hundredths; the header knows the currency.
    money(value) {
      const { symbol = "", places = "2" } = document.querySelector(".al-header")?.dataset ?? {};
      const digits = { minimumFractionDigits: Number(places), maximumFractionDigits: Number(places) };
      return symbol + (Number(value) / 100).toLocaleString("en-US", digits);
    },
    // The same on an axis, in few characters.
    briefMoney: (value) => (document.querySelector(".al-header")?.dataset.symbol ?? "") + adloom.brief(value / 100),
    millis: (value) => `${Number(value).toLocaleString("en-US", { maximumFractionDigits: 3 })} ms`,
    // Shows a sum on an axis in few characters.
    brief: (value) => Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: Math.abs(value) < 1 ? 2 : 1 }).format(value),
  };

  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    globalThis.Quasar?.Dark?.set(root.dataset.theme === "dark");
  });
  // What nobody sees need not be read anew.
  document.addEventListener("visibilitychange", () => globalThis.emitEvent?.("adloom_visible", !document.hidden));
  // Pictures in lists are loaded when somebody asks for them: their addresses are the advertisers'.
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button.al-thumb[data-picture]");
    if (!button) return;
    event.preventDefault(); // It may lie in a link.
    event.stopPropagation();
    const picture = Object.assign(new Image(), { className: "al-thumb", alt: button.dataset.alt, referrerPolicy: "no-referrer" });
    picture.src = button.dataset.picture;
    button.replaceWith(picture);
  }, true);
  // One that cannot be loaded becomes a plain placeholder, not the browser's sign of a broken page.
  const missing = "data:image/svg+xml," + encodeURIComponent(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 44 30"><path d="M14 9h16v12H14zm2 10 4-5 3 3 3-4 3 6" fill="none" stroke="#8a8a8a"/></svg>',
  );
  document.addEventListener("error", (event) => {
    const picture = event.target;
    if (!picture.matches?.("img.al-thumb, .al-pictures img") || picture.src.startsWith("data:")) return;
    picture.title = "The picture cannot be loaded";
    picture.dataset.missing = picture.src;
    picture.src = missing;
  }, true);
  document.addEventListener("focusin", (event) => {
    const { act, value } = event.target.dataset ?? {};
    focused = act ? `[data-act="${act}"][data-value="${CSS.escape(value ?? "")}"]` : null;
  });
  // Keys of a page that names some in `data-keys`; not while somebody types, and not behind a dialog.
  document.addEventListener("keydown", (event) => {
    const keys = document.querySelector("[data-keys]")?.dataset.keys.split(" ") ?? [];
    if (!keys.includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    if (document.querySelector(".q-dialog__inner, .q-menu")) return;
    event.preventDefault();
    globalThis.emitEvent?.("adloom_key", event.key);
  });
  // Who leaves a form that is not saved is asked first; the server marks its button (`form.py`).
  addEventListener("beforeunload", (event) => {
    if (document.querySelector("[data-unsaved]")) event.preventDefault();
  });
  // Enter in a field presses the button of its form; in a list it chooses, and in a long text it ends a line.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest?.("input[data-form]:not([role=combobox])");
    if (field) document.querySelector(`[data-submits="${field.dataset.form}"]`)?.click();
  });
  // The arrows move in a menu, as its role says.
  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const entries = [...(event.target.closest?.('.q-menu[role="menu"]')?.querySelectorAll('[role="menuitem"]') ?? [])];
    if (!step || !entries.length) return;
    event.preventDefault();
    const at = entries.indexOf(document.activeElement);
    entries[(at < 0 && step < 0 ? entries.length - 1 : at + step + entries.length) % entries.length].focus();
  });
  // A row of a table leads where its first link leads, unless something else in it was meant.
  document.addEventListener("click", (event) => {
    const row = event.target.closest?.("tr[data-href]");
    if (!row || event.target.closest("a, button, input, label, .q-btn") || getSelection()?.toString()) return;
    if (event.metaKey || event.ctrlKey) open(row.dataset.href, "_blank", "noopener");
    else location.assign(row.dataset.href);
  });
})();
