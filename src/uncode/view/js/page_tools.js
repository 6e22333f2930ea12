/** What every page has: light or dark, and the help. */

import { el } from "./dom.js";

const THEME = "uncode-theme";

/** What the words of a view mean. */
export const WORDS = [
  ["masked", "a position that is not written yet"],
  ["step", "one forward of the model, and the tokens that it commits"],
  ["commit time", "colour from early to late: the share of the tokens that were committed before this one"],
  ["confidence", "the probability that the model gave the token when it was committed"],
  ["entropy", "how undecided the model was at that position, in nats; 0 is certain"],
  ["score", "what the sampler ranks positions by; the highest is committed first"],
  ["trivial", "blanks, punctuation and is, the, of, a, an: easy to guess, so that many samplers commit them early"],
];

/**
 * The help of a page: tables of terms and their meanings, by their titles. The terms of "Keys" are drawn as keys.
 * @param {Record<string, string[][]>} tables
 */
export function helpDialog(tables) {
  const close = el("button", { type: "button" }, "Close");
  const parts = Object.entries(tables).map(([title, meanings]) => helpTable(title, meanings));
  const dialog = el("dialog", { class: "help", "aria-label": "Help" }, close, ...parts);
  close.addEventListener("click", () => dialog.close());
  return dialog;
}

/**
 * @param {string} title
 * @param {string[][]} meanings
 */
export function helpTable(title, meanings) {
  const rows = meanings.map(([term, meaning]) => {
    const shown = title === "Keys" ? keysOf(term) : [term];
    return el("tr", {}, el("th", { scope: "row" }, ...shown), el("td", {}, meaning));
  });
  return el("section", {}, el("h2", {}, title), el("table", {}, ...rows));
}

/** @param {string} keys */
function keysOf(keys) {
  return keys.split(" ").map((key) => (key === "…" ? key : el("kbd", {}, key)));
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
