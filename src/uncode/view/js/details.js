/** The card that says everything about one token. */

import { el } from "./dom.js";
import { number, probability, quoted } from "./text.js";

/** @typedef {import("./model.js").Cell} Cell */
/** @typedef {import("./model.js").TraceModel} TraceModel */

const GAP = 8;
/** @type {Record<string, string>} */
const WITHOUT_STEP = {
  given: "given, not generated",
  filled: "filled by the stop rule, without a forward",
};

export class Details {
  constructor() {
    this.element = el("div", { class: "details", role: "status", hidden: true });
  }

  hide() {
    this.element.hidden = true;
  }

  /**
   * Show a token of a trace near its place on the screen.
   * @param {TraceModel} model
   * @param {number} offset
   * @param {Cell} cell
   * @param {HTMLElement} token
   */
  show(model, offset, cell, token) {
    this.element.replaceChildren(...content(model, offset, cell));
    this.element.hidden = false;
    this.place(token.getClientRects()[0]);
  }

  /**
   * Below the token, or above it where there is no room below. On a narrow screen the style sheet docks the card.
   * @param {DOMRect | undefined} at
   */
  place(at) {
    const card = this.element.getBoundingClientRect();
    const { clientWidth, clientHeight } = document.documentElement;
    if (!at) return;
    const fitsBelow = at.bottom + GAP + card.height < clientHeight;
    const top = fitsBelow ? at.bottom + GAP : Math.max(GAP, at.top - GAP - card.height);
    this.element.style.left = `${Math.max(GAP, Math.min(at.left, clientWidth - card.width - GAP))}px`;
    this.element.style.top = `${top}px`;
  }
}

/**
 * @param {TraceModel} model
 * @param {number} offset
 * @param {Cell} cell
 * @returns {Node[]}
 */
function content(model, offset, cell) {
  const isMasked = cell.kind === "masked";
  const title = isMasked ? "masked" : cell.isEos ? `EOS ${quoted(cell.text)}` : quoted(cell.text);
  const id = isMasked ? "" : `, id ${cell.token}`;
  const head = el("div", { class: "head" }, el("strong", {}, title), el("span", {}, `offset ${offset}${id}`));
  const marks = el("p", { class: "marks" }, marksOf(model, offset, cell).join(" · "));
  const belief = cell.belief;
  if (!belief) return [head, marks];
  const facts = el("dl", { class: "facts" });
  /** @type {(name: string, value: string) => void} */
  const add = (name, value) => facts.append(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  add("probability", probability(belief.logp));
  add("entropy", belief.entropy == null ? "–" : `${number(belief.entropy)} nats`);
  add("margin", number(belief.margin));
  return [head, marks, facts, scoreOf(belief), runnerUpOf(model, belief.runner_up ?? null)];
}

/**
 * @param {TraceModel} model
 * @param {number} offset
 * @param {Cell} cell
 */
function marksOf(model, offset, cell) {
  const marks = [cell.kind === "masked" ? untilWhen(model, offset) : (WITHOUT_STEP[cell.kind] ?? `step ${cell.step}`)];
  if (cell.kind === "erased") marks.push("erased by the remasker");
  if (cell.kind === "written" && !cell.belief) marks.push("rewritten later, belief not recorded");
  if (cell.kind !== "masked" && cell.isTrivial) marks.push("trivial");
  if (model.answer.has(offset)) marks.push("in the answer");
  return marks;
}

/**
 * @param {TraceModel} model
 * @param {number} offset
 */
function untilWhen(model, offset) {
  const final = model.finalCells[offset];
  if (!final) return "not written yet";
  return final.step >= 0 ? `until step ${final.step}` : "until the stop rule fills it";
}

/**
 * The score and its terms.
 * @param {import("./model.js").Belief} belief
 */
function scoreOf(belief) {
  const terms = Object.entries(belief.terms ?? {});
  const table = el("table", { class: "terms" });
  for (const [name, value] of terms) {
    table.append(el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, number(value))));
  }
  table.append(el("tr", { class: "sum" }, el("th", { scope: "row" }, "score"), el("td", {}, number(belief.score))));
  return table;
}

/**
 * @param {TraceModel} model
 * @param {number | null} offset
 */
function runnerUpOf(model, offset) {
  if (offset === null) return el("p", { class: "beat" }, "No other mask was open.");
  const cell = model.finalCells[offset] ?? model.cells[offset];
  const later = cell.step >= 0 ? `, which became ${quoted(cell.text)} at step ${cell.step}` : "";
  return el("p", { class: "beat" }, `It beat offset ${offset}${later}.`);
}
