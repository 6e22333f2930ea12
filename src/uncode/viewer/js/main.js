/** The page: reads the traces from it, and shows the view of one prompt at a time. */

import { el } from "./dom.js";
import { TraceModel } from "./model.js";
import { follow, jsonLines } from "./stream.js";
import { visible } from "./text.js";
import { TraceView } from "./view.js";

/** @typedef {{ label: string, rows: import("./model.js").Row[] }} Problem */

const KEYS = [
  ["Space", "play or pause"],
  ["← →", "one step back or forward (also , and .)"],
  ["Home End", "first or last step"],
  ["+ −", "faster or slower"],
  ["1 … 5", "colour by commit time, confidence, entropy, score, triviality"],
  ["Tab", "to the next control, and into a canvas"],
  ["← → ↑ ↓", "in a canvas: from token to token"],
  ["Esc", "close the details of a token"],
  ["T", "light or dark"],
  ["?", "this help"],
];

const THEME = "uncode-theme";

class Page {
  /** @param {Problem[]} problems */
  constructor(problems) {
    this.problems = problems;
    this.place = /** @type {HTMLElement} */ (document.querySelector("main"));
    this.help = helpDialog();
    /** @type {TraceView | null} */
    this.view = null;
    this.tabs = problems.map((problem, at) => this.tab(problem, at));
    this.slot = el("div", { class: "slot" });
    const tools = /** @type {HTMLElement} */ (document.querySelector(".tools"));
    tools.append(button("Light or dark", "◐", toggleTheme), button("Help", "?", () => this.help.showModal()));
    const nav = el("nav", { class: "problems", "aria-label": "Problems" }, ...this.tabs);
    this.place.replaceChildren(...(problems.length > 1 ? [nav] : []), this.slot);
    document.body.append(this.help);
    document.addEventListener("keydown", (event) => this.handleKey(event));
    this.open(0);
  }

  /**
   * @param {Problem} problem
   * @param {number} at
   */
  tab(problem, at) {
    const made = el("button", { type: "button" }, visible(problem.label) || `prompt ${at + 1}`);
    made.addEventListener("click", () => this.open(at));
    return made;
  }

  /** @param {number} at */
  open(at) {
    this.view?.close();
    this.tabs.forEach((tab, other) => tab.setAttribute("aria-current", String(other === at)));
    this.view = new TraceView({ rows: this.problems[at].rows });
    this.slot.replaceChildren(this.view.element);
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    if (event.defaultPrevented || this.help.open || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (target instanceof HTMLInputElement && target.type === "search") return;
    if (event.key === "?") this.help.showModal();
    else if (event.key === "t" || event.key === "T") toggleTheme();
    else if (target instanceof Node && this.view?.element.contains(target)) return;
    else if (!this.view?.handleKey(event)) return;
    event.preventDefault();
  }
}

function helpDialog() {
  const rows = KEYS.map(([keys, meaning]) => {
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
function button(label, sign, onClick) {
  const made = el("button", { type: "button", "aria-label": label, title: label }, sign);
  made.addEventListener("click", onClick);
  return made;
}

function toggleTheme() {
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

function restoreTheme() {
  try {
    const saved = localStorage.getItem(THEME);
    if (saved === "light" || saved === "dark") document.documentElement.dataset.theme = saved;
  } catch {
    // As above.
  }
}

restoreTheme();
const data = document.getElementById("traces");
if (data) new Page(JSON.parse(data.textContent ?? "[]"));
/** For scripts and the console: the component itself. */
/** @type {any} */ (window).uncode = { TraceView, TraceModel, follow, jsonLines };
