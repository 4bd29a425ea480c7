// The text of a page that nobody knows yet: what it says to everyone, never what its reader has written or chosen.

const TEXT_MAX = 8000;
const NO_TEXT = "data-adloom-no-text";
const UNREAD =
  "input,textarea,select,button,datalist,output,script,style,noscript,template,iframe,nav,footer,aside,body>header," +
  `[role=textbox],[role=searchbox],[role=combobox],[aria-hidden=true],[${NO_TEXT}]`;
const told = new Set(); // Addresses: a page may become another without being loaded.

// What is after # is its reader's.
const pageUrl = () => location.href.split("#")[0];

function isUnread(element) {
  const { display, visibility } = getComputedStyle(element);
  return element.isContentEditable || element.matches(UNREAD) || display === "none" || visibility !== "visible";
}

function readText() {
  const find = (selector) => document.querySelector(selector);
  const root = find("main,[role=main]") || find("article") || document.body;
  if (isUnread(root) || root.closest(UNREAD)) return;
  // Elements and texts; what is within a rejected element is not looked at.
  const nodes = document.createTreeWalker(root, 5, (node) => (node.data == null && isUnread(node) ? 2 : 1));
  let text = "";
  while (text.length < TEXT_MAX && nodes.nextNode()) text += `${(nodes.currentNode.data || "").trim()} `.trimStart();
  return text.replace(/\s+/g, " ").slice(0, TEXT_MAX).trim();
}

// When the browser has nothing else to do, and once for each address. Meanwhile the page may have become another.
function tellText(url, at) {
  if (told.has(url) || script.hasAttribute(NO_TEXT)) return;
  told.add(url);
  (window.requestIdleCallback || setTimeout)(() => {
    const text = isAllowed && at === pageUrl() && readText();
    const [language] = /^[a-z]{2,3}\b/i.exec(document.documentElement.lang) || [];
    if (text) post("v1/classify-page", { url, title: document.title, text, language }).catch(() => {});
  });
}
