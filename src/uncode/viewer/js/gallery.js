/** The list of problems beside the view: search, filters, order. */

import { el, setAttributes } from "./dom.js";
import { distinct, matches, ORDERS, samplerPair, sorted } from "./problems.js";
import { visible } from "./text.js";

/** @typedef {import("./problems.js").Order} Order */
/** @typedef {import("./problems.js").Problem} Problem */

const ORDER_NAMES = /** @type {Order[]} */ (Object.keys(ORDERS));
const NAME_LENGTH = 60;
/** More traces than these are one line of an item. */
const MAX_MARKS = 4;

export class Gallery {
  /**
   * @param {Problem[]} problems
   * @param {(at: number) => void} onOpen
   */
  constructor(problems, onOpen) {
    this.problems = problems;
    this.onOpen = onOpen;
    this.pair = samplerPair(problems);
    this.search = el("input", { type: "search", placeholder: "Search", "aria-label": "Search problems" });
    this.order = choice("Order", ORDER_NAMES.map((name) => ORDERS[name]));
    const tasks = distinct(problems, "task").filter(Boolean);
    this.task = choice("Task", ["every task", ...tasks]);
    const samplers = distinct(problems.flatMap((problem) => problem.traces), "sampler");
    const verdicts = samplers.flatMap((name) => [`${name} right`, `${name} wrong`]);
    this.verdict = choice("Verdict", ["right or wrong", ...verdicts]);
    this.samplers = samplers;
    this.found = el("p", { class: "found", role: "status" });
    this.items = problems.map((problem, at) => this.item(problem, at));
    this.list = el("ul", {}, ...this.items);
    this.quick = el("button", { type: "button", "aria-pressed": "false", class: "quick" });
    this.element = el("nav", { class: "gallery-list", "aria-label": "Problems" });
    this.element.append(...this.controls(tasks), this.found, this.list);
    this.current = 0;
    this.mark(0);
    this.update();
  }

  /** @param {string[]} tasks */
  controls(tasks) {
    for (const control of [this.search, this.order, this.task, this.verdict]) {
      control.addEventListener("input", () => this.update());
    }
    const row = el("div", { class: "filters" }, this.order);
    if (tasks.length > 1) row.append(this.task);
    if (!this.pair) return [this.search, row];
    row.append(this.verdict);
    this.quick.textContent = `${visible(this.pair[0])} wrong, ${visible(this.pair[1])} right`;
    this.quick.addEventListener("click", () => {
      setAttributes(this.quick, { "aria-pressed": String(!this.isQuick()) });
      this.update();
    });
    return [this.search, row, this.quick];
  }

  isQuick() {
    return this.quick.getAttribute("aria-pressed") === "true";
  }

  /**
   * @param {Problem} problem
   * @param {number} at
   */
  item(problem, at) {
    const name = visible(problem.label) || `prompt ${at + 1}`;
    const text = visible(problem.prompt).trim().replace(/\s+/g, " ").slice(0, NAME_LENGTH);
    const button = el("button", { type: "button" }, el("strong", {}, name), el("span", { class: "text" }, text));
    const isLong = problem.traces.length > MAX_MARKS;
    button.append(...(isLong ? [summaryOf(problem.traces)] : problem.traces.map(markOf)));
    button.addEventListener("click", () => this.open(at));
    return el("li", {}, button);
  }

  /** @param {number} at */
  open(at) {
    this.mark(at);
    this.onOpen(at);
  }

  /** @param {number} at */
  mark(at) {
    this.current = at;
    this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    this.items[at].firstElementChild?.setAttribute("aria-current", "true");
  }

  /** @returns {import("./problems.js").Query} */
  query() {
    /** @type {import("./problems.js").Query} */
    const query = { words: this.search.value, task: "", rightIn: [], wrongIn: [] };
    if (this.task.selectedIndex > 0) query.task = this.task.value;
    const chosen = this.verdict.selectedIndex - 1;
    const sampler = this.samplers[Math.floor(chosen / 2)];
    if (chosen >= 0) (chosen % 2 === 0 ? query.rightIn : query.wrongIn).push(sampler);
    if (this.pair && this.isQuick()) {
      query.wrongIn.push(this.pair[0]);
      query.rightIn.push(this.pair[1]);
    }
    return query;
  }

  /** Show the problems that match, in their order. If the open one does not match, open the first. */
  update() {
    const query = this.query();
    const numbers = sorted(this.problems, ORDER_NAMES[this.order.selectedIndex]);
    const shown = numbers.filter((at) => matches(this.problems[at], query));
    this.list.replaceChildren(...shown.map((at) => this.items[at]));
    this.found.textContent = `${shown.length} of ${this.problems.length} problems`;
    if (shown.length && !shown.includes(this.current)) this.open(shown[0]);
  }
}

/**
 * A trace in the list: right or wrong, its sampler, its forwards.
 * @param {import("./problems.js").Entry} trace
 */
function markOf({ sampler, right, forwards }) {
  const verdict = el("span", { class: right ? "right" : "wrong" }, right ? "✓ right, " : "✗ wrong, ");
  const text = `${visible(sampler)}, ${forwards} forwards`;
  return el("span", { class: "mark" }, ...(right === null ? [] : [verdict]), text);
}

/**
 * Many traces in the list: how many are right, and their forwards.
 * @param {import("./problems.js").Entry[]} traces
 */
function summaryOf(traces) {
  const graded = traces.filter(({ right }) => right !== null);
  const right = graded.filter((trace) => trace.right).length;
  const verdicts = graded.length ? `${right} of ${graded.length} right, ` : `${traces.length} traces, `;
  const forwards = traces.map((trace) => trace.forwards);
  return el("span", { class: "mark" }, `${verdicts}${Math.min(...forwards)} to ${Math.max(...forwards)} forwards`);
}

/**
 * @param {string} label
 * @param {string[]} texts
 */
function choice(label, texts) {
  return el("select", { "aria-label": label }, ...texts.map((text) => el("option", { value: text }, visible(text))));
}
