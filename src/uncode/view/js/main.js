/** The page: reads the traces from it, and shows the view of one prompt at a time. */

import { defaultChoice, SamplerChoice } from "./choice.js";
import { el } from "./dom.js";
import { Gallery } from "./gallery.js";
import { TraceModel } from "./model.js";
import { helpDialog, WORDS, restoreTheme, toggleTheme, toolButton } from "./page_tools.js";
import { follow, jsonLines } from "./stream.js";
import { visible } from "./text.js";
import { TraceView } from "./view.js";

/** @typedef {import("./problems.js").Problem} Problem */
/** @typedef {import("./row.js").Row} Row */

/** More problems than these are a list with a search, fewer are a row of buttons. */
const MAX_BUTTONS = 12;

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

const DEFLATED = "application/deflate";

class Page {
  /** @param {Problem[]} problems */
  constructor(problems) {
    this.problems = problems;
    this.help = helpDialog({ Words: WORDS, Keys: KEYS });
    /** @type {TraceView | null} */
    this.view = null;
    this.opened = 0;
    /** The samplers that the reader has chosen, by name: they are chosen for the other problems too. */
    this.samplers = /** @type {string[]} */ ([]);
    this.slot = el("div", { class: "slot" });
    /** @type {HTMLElement[]} */
    this.buttons = [];
    const tools = /** @type {HTMLElement} */ (document.querySelector(".tools"));
    tools.append(toolButton("Light or dark", "◐", toggleTheme));
    tools.append(toolButton("Help", "?", () => this.help.showModal()));
    const place = /** @type {HTMLElement} */ (document.querySelector("main"));
    place.replaceChildren(...this.chooser(place), this.slot);
    document.body.append(this.help);
    document.addEventListener("keydown", (event) => this.handleKey(event));
    this.open(0);
  }

  /**
   * The list of problems, if there is more than one.
   * @param {HTMLElement} place
   * @returns {HTMLElement[]}
   */
  chooser(place) {
    if (this.problems.length > MAX_BUTTONS) {
      const gallery = new Gallery(this.problems, (at) => this.open(at));
      document.body.classList.add("wide");
      place.classList.add("gallery");
      return [gallery.element];
    }
    if (this.problems.length < 2) return [];
    this.buttons = this.problems.map((problem, at) => this.chooserButton(problem, at));
    return [el("nav", { class: "problems", "aria-label": "Problems" }, ...this.buttons)];
  }

  /**
   * @param {Problem} problem
   * @param {number} at
   */
  chooserButton(problem, at) {
    const made = el("button", { type: "button" }, visible(problem.label) || `prompt ${at + 1}`);
    made.addEventListener("click", () => this.open(at));
    return made;
  }

  /** @param {number} at */
  async open(at) {
    this.opened = at;
    this.buttons.forEach((made, other) => made.setAttribute("aria-current", String(other === at)));
    const { traces } = this.problems[at];
    const rows = await rowsOf(at, this.problems[at]);
    if (this.opened !== at) return; // the reader has opened another one meanwhile
    const chosen = traces.flatMap(({ sampler }, number) => (this.samplers.includes(sampler) ? [number] : []));
    const first = chosen.length ? chosen : defaultChoice(traces);
    const choice = new SamplerChoice(traces, first, (numbers) => {
      this.samplers = numbers.map((number) => traces[number].sampler);
      const position = this.view?.transport.position;
      this.show(numbers.map((number) => rows[number]));
      if (position !== undefined) this.view?.seek(position);
    });
    this.slot.replaceChildren(...(first.length < traces.length || chosen.length ? [choice.element] : []));
    this.show(first.map((number) => rows[number]));
  }

  /**
   * Show rows as the reader has set the view before.
   * @param {Row[]} rows
   */
  show(rows) {
    const former = this.view;
    this.view = new TraceView({ rows });
    if (former) this.view.takeSettings(former);
    if (former?.element.parentNode === this.slot) former.element.replaceWith(this.view.element);
    else this.slot.append(this.view.element);
    former?.close();
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

/**
 * The rows of a problem. They are read when it is opened, so that a page of a thousand traces opens at once.
 * @param {number} at
 * @param {Problem} problem
 * @returns {Promise<Row[]>}
 */
async function rowsOf(at, problem) {
  const block = document.getElementById(`rows-${at}`);
  const text = block?.textContent ?? "[]";
  /** @type {Row[]} */
  const rows = JSON.parse(block?.getAttribute("type") === DEFLATED ? await inflated(text) : text);
  return rows.map((row) => ({ ...row, prompt_text: problem.prompt }));
}

/** @param {string} text compressed and in base64 */
async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

restoreTheme();
if (window.parent !== window) document.body.classList.add("embedded");
const problems = document.getElementById("problems");
if (problems) new Page(JSON.parse(problems.textContent ?? "[]"));

/** For scripts and the console: the component itself. */
/** @type {any} */ (window).uncode = { TraceView, TraceModel, follow, jsonLines };
