/** What every page has: light or dark, and the help. */

import { el } from "./dom.js";

const THEME = "uncode-theme";

/**
 * The keys of a page and what they do.
 * @param {string[][]} meanings
 */
export function helpDialog(meanings) {
  const rows = meanings.map(([keys, meaning]) => {
    const shown = keys.split(" ").map((key) => (key === "…" ? key : el("kbd", {}, key)));
    return el("tr", {}, el("th", { scope: "row" }, ...shown), el("td", {}, meaning));
  });
  const close = el("button", { type: "button" }, "Close");
  const dialog = el("dialog", { "aria-label": "Keys" }, el("h2", {}, "Keys"), el("table", {}, ...rows), close);
  close.addEventListener("click", () => dialog.close());
  return dialog;
}

/**
 * @param {string} label
 * @param {string} sign
 * @param {() => void} onClick
 */
export function toolButton(label, sign, onClick) {
  const made = el("button", { type: "button", "aria-label": label, title: label }, sign);
  made.addEventListener("click", onClick);
  return made;
}

export function toggleTheme() {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const isDark = (root.dataset.theme ?? system) === "dark";
  root.dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem(THEME, root.dataset.theme);
  } catch {
    // A page from a file may have no storage: the choice then ends with the page.
  }
}

export function restoreTheme() {
  try {
    const saved = localStorage.getItem(THEME);
    if (saved === "light" || saved === "dark") document.documentElement.dataset.theme = saved;
  } catch {
    // As above.
  }
}
