/**
 * The list of problems beside the view: search, filters, order.
 *
 * The first matches are elements, more are added when the reader scrolls to the end: a key of a search may change all.
 */

import { el, setAttributes } from "./dom.js";
import { distinct, matches, ORDERS, samplerPair, sorted } from "./problems.js";
import { plural, visible } from "./text.js";

/** @typedef {import("./problems.js").Order} Order */
/** @typedef {import("./problems.js").Problem} Problem */

const ORDER_NAMES = /** @type {Order[]} */ (Object.keys(ORDERS));
const NAME_LENGTH = 60;
/** Problems that are added to the list at a time. */
const PART = 50;
/** A search that has rested for this long opens its first match: not every key opens a problem. */
const REST_MS = 120;
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
    /** The elements of the problems that have been in the list. @type {Map<number, HTMLElement>} */
    this.items = new Map();
    /** The numbers of the problems that match. @type {number[]} */
    this.shown = [];
    this.limit = PART;
    this.timer = 0;
    this.list = el("ul", {});
    this.more = el("button", { type: "button", class: "more" });
    this.lastItem = el("li", {}, this.more);
    this.more.addEventListener("click", () => this.extend());
    const near = { root: this.list, rootMargin: "0px 0px 200px" };
    const observer = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.extend(), near);
    observer.observe(this.more);
    this.quick = el("button", { type: "button", "aria-pressed": "false", class: "quick" });
    this.element = el("nav", { class: "gallery-list", "aria-label": "Problems" });
    this.element.append(...this.controls(tasks), this.found, this.list);
    this.current = 0;
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

  /** @param {number} at */
  item(at) {
    const known = this.items.get(at);
    if (known) return known;
    const problem = this.problems[at];
    const name = visible(problem.label) || `prompt ${at + 1}`;
    const text = visible(problem.prompt).trim().replace(/\s+/g, " ").slice(0, NAME_LENGTH);
    const button = el("button", { type: "button" }, el("strong", {}, name), el("span", { class: "text" }, text));
    const isLong = problem.traces.length > MAX_MARKS;
    button.append(...(isLong ? [summaryOf(problem.traces)] : problem.traces.map(markOf)));
    button.addEventListener("click", () => this.open(at));
    const item = el("li", {}, button);
    this.items.set(at, item);
    return item;
  }

  /** @param {number} at */
  open(at) {
    this.current = at;
    this.draw();
    this.onOpen(at);
  }

  /** If the open problem does not match, open the first that does. */
  openFirst() {
    if (this.shown.length && !this.shown.includes(this.current)) this.open(this.shown[0]);
  }

  extend() {
    this.limit += PART;
    this.draw();
  }

  /** Draw the first matches. */
  draw() {
    const drawn = this.shown.slice(0, this.limit);
    const items = drawn.map((at) => this.item(at));
    const rest = this.shown.length - drawn.length;
    this.more.textContent = `${rest} more`;
    if (rest) items.push(this.lastItem);
    const { children } = this.list;
    const isSame = items.length === children.length && items.every((item, at) => item === children[at]);
    if (!isSame) this.list.replaceChildren(...items);
    this.list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    this.items.get(this.current)?.firstElementChild?.setAttribute("aria-current", "true");
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

  /** Show the problems that match, in their order. */
  update() {
    const query = this.query();
    const numbers = sorted(this.problems, ORDER_NAMES[this.order.selectedIndex]);
    this.shown = numbers.filter((at) => matches(this.problems[at], query));
    this.limit = PART;
    this.found.textContent = `${this.shown.length} of ${plural(this.problems.length, "problem")}`;
    this.draw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.openFirst(), REST_MS);
  }
}

/**
 * A trace in the list: right or wrong, its sampler, its forwards.
 * @param {import("./problems.js").Entry} trace
 */
function markOf({ sampler, right, forwards }) {
  const verdict = el("span", { class: right ? "right" : "wrong" }, right ? "✓ right, " : "✗ wrong, ");
  const text = `${visible(sampler)}, ${plural(forwards, "forward")}`;
  return el("span", { class: "mark" }, ...(right === null ? [] : [verdict]), text);
}

/**
 * Many traces in the list: how many are right, and their forwards.
 * @param {import("./problems.js").Entry[]} traces
 */
function summaryOf(traces) {
  const graded = traces.filter(({ right }) => right !== null);
  const right = graded.filter((trace) => trace.right).length;
  const verdicts = graded.length ? `${right} of ${graded.length} right, ` : `${plural(traces.length, "trace")}, `;
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
