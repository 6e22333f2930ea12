/** The view of the decodes, and what can be taken away: the trace, the text, the commands that repeat it. */

import { el } from "../../../view/js/dom.js";
import { TraceModel } from "../../../view/js/model.js";
import { follow } from "../../../view/js/stream.js";
import { visible } from "../../../view/js/text.js";
import { TraceView } from "../../../view/js/view.js";
import { commandLine, python } from "./recipe.js";

/** @typedef {import("./decode_run.js").DecodeRun} DecodeRun */
/** @typedef {import("./decode_run.js").Opening} Opening */
/** @typedef {import("./recipe.js").Recipe} Recipe */

const COPIED_MS = 1500;

export class Results {
  constructor() {
    /** @type {TraceView | null} */
    this.view = null;
    /** @type {DecodeRun[]} */
    this.runs = [];
    /** @type {Recipe[]} */
    this.recipes = [];
    this.slot = el("div", { class: "slot" });
    this.actions = el("div", { class: "actions", hidden: true });
    this.element = el("section", { class: "results", "aria-label": "Result" }, this.slot, this.actions);
    this.clear();
  }

  /** Show no decode: there is none, or what is shown is not of the prompt that was refused. */
  clear() {
    this.view?.close();
    this.view = null;
    this.runs = [];
    this.actions.hidden = true;
    this.markAsOld(false);
    this.slot.replaceChildren(el("p", { class: "empty" }, "The canvas appears here. Press Decode, or Ctrl and Enter."));
  }

  /**
   * While a decode waits for its first forward, the page still shows the one before it.
   * @param {boolean} isOld
   */
  markAsOld(isOld) {
    this.element.classList.toggle("old", isOld);
    this.element.setAttribute("aria-busy", String(isOld));
  }

  /**
   * Show the decodes as they run, until all have ended. A finished one is shown with all that its trace records.
   * @param {DecodeRun[]} runs
   * @param {Opening[]} openings
   * @param {Recipe[]} recipes
   */
  async follow(runs, openings, recipes) {
    this.view?.close();
    this.markAsOld(false);
    this.runs = runs;
    this.recipes = recipes;
    const models = openings.map(({ length, given, eos_ids: eosIds }, at) => {
      const { chosen, constraint } = recipes[at];
      const [title, lead, isConstrained] = [chosen.title, leadOf(recipes[at]), constraint !== null];
      return new TraceModel({ length, given, eosIds, title, lead, isConstrained });
    });
    const view = new TraceView({ models, withPrompt: false });
    this.view = view;
    this.slot.replaceChildren(view.element);
    this.actions.hidden = true;
    if (view.element.getBoundingClientRect().top > innerHeight / 2) view.element.scrollIntoView({ block: "start" });
    await Promise.all(runs.map((run, at) => this.followOne(view, run, at)));
    this.showActions();
  }

  /**
   * @param {TraceView} view
   * @param {DecodeRun} run
   * @param {number} at
   */
  async followOne(view, run, at) {
    await follow(view, run.steps(), at);
    const { row } = run;
    if (!row || !view.models[at].isFinished) return;
    this.recipes[at].row = row;
    const summary = [`${row.forwards} forwards`, `${run.seconds.toFixed(2)} s`];
    const recipe = this.recipes[at];
    view.complete({ ...row, title: recipe.chosen.title, lead: leadOf(recipe), summary }, at);
  }

  /** How the decodes ended, in a sentence. */
  outcome() {
    const states = this.view?.models.map(({ state }) => state) ?? [];
    if (states.includes("failed")) return "Failed.";
    return states.includes("cancelled") ? "Stopped." : "Finished.";
  }

  showActions() {
    const done = this.runs.map((run, at) => ({ run, recipe: this.recipes[at] })).filter(({ run }) => run.row);
    this.actions.hidden = !done.length;
    if (!done.length) return;
    const save = el("button", { type: "button" }, "Save the trace");
    save.addEventListener("click", () => this.save());
    const verb = el("code", {}, "uncode view");
    const hint = el("p", { class: "hint" }, "A file for ", verb, ", with all numbers of the decode.");
    const recipes = done.map(({ run, recipe }) => recipeBlock(run, recipe, done.length > 1));
    this.actions.replaceChildren(el("div", { class: "save" }, save, hint), el("div", { class: "recipes" }, ...recipes));
  }

  /** Save the rows of all finished decodes: one JSON line each. */
  save() {
    const lines = this.runs.filter(({ row }) => row).map(({ row }) => JSON.stringify(row) + "\n");
    const address = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    el("a", { href: address, download: "trace.jsonl" }).click();
    setTimeout(() => URL.revokeObjectURL(address), COPIED_MS);
  }
}

/**
 * The text before the first gap: the canvas of a text with gaps begins there.
 * @param {Recipe} recipe
 */
function leadOf({ parts, length }) {
  return length === null && typeof parts[0] === "string" ? parts[0] : "";
}

/**
 * @param {DecodeRun} run
 * @param {Recipe} recipe
 * @param {boolean} isNamed
 */
function recipeBlock(run, recipe, isNamed) {
  const title = isNamed ? `Repeat ${recipe.chosen.title}` : "Repeat this decode";
  return el(
    "section",
    { class: "recipe", "aria-label": title },
    el("div", { class: "head" }, el("h2", {}, title), copyButton("Copy the text", () => run.text, null)),
    code("Command line", commandLine(recipe)),
    code("Python", python(recipe)),
  );
}

/**
 * A text with a button that copies it.
 * @param {string} label
 * @param {string} text
 */
function code(label, text) {
  const shown = el("pre", { tabindex: 0, role: "region", "aria-label": label }, visible(text));
  const copy = copyButton("Copy", () => text, shown);
  copy.setAttribute("aria-label", `Copy: ${label}`);
  return el("div", { class: "code" }, el("div", { class: "head" }, el("span", {}, label), copy), shown);
}

/**
 * A button that copies a text. Where the browser does not allow that, the text is selected.
 * @param {string} label
 * @param {() => string} text
 * @param {HTMLElement | null} shown where the text stands
 */
export function copyButton(label, text, shown) {
  const copy = el("button", { type: "button" }, label);
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      copy.textContent = "Copied";
    } catch {
      if (shown) getSelection()?.selectAllChildren(shown);
      copy.textContent = shown ? "Selected" : "Not allowed";
    }
    setTimeout(() => (copy.textContent = label), COPIED_MS);
  });
  return copy;
}
