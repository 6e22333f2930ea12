/** Which traces of a problem are shown, where there are many. */

import { el, setAttributes } from "./dom.js";
import { preferredPair } from "./problems.js";
import { visible } from "./text.js";

/** @typedef {import("./problems.js").Entry} Entry */

/** As many traces stand side by side without a choice. */
const MAX_SHOWN = 4;

/**
 * The numbers of the traces that are shown first: all if they are few, else one that is wrong and one that is right.
 * @param {Entry[]} traces
 * @returns {number[]}
 */
export function defaultChoice(traces) {
  const numbers = traces.map((_, at) => at);
  if (traces.length <= MAX_SHOWN) return numbers;
  const names = preferredPair(traces.map(({ sampler }) => sampler));
  const [first, second] = names.map((name) => traces.findIndex(({ sampler }) => sampler === name));
  /** @type {(right: boolean, at: number) => number} the preferred one, or the first with this verdict */
  const find = (right, at) => (traces[at].right === right ? at : traces.findIndex((trace) => trace.right === right));
  const wrong = find(false, first);
  const right = find(true, second);
  return (wrong < 0 || right < 0 ? [first, second] : [wrong, right]).sort((a, b) => a - b);
}

/** A button for each trace, which shows or hides it. */
export class SamplerChoice {
  /**
   * @param {Entry[]} traces
   * @param {number[]} chosen
   * @param {(chosen: number[]) => void} onChange
   */
  constructor(traces, chosen, onChange) {
    this.onChange = onChange;
    this.chosen = new Set(chosen);
    this.buttons = traces.map((trace, at) => this.button(trace, at));
    this.all = el("button", { type: "button", class: "whole" });
    this.all.addEventListener("click", () => {
      const isAll = this.chosen.size === traces.length;
      this.choose(isAll ? defaultChoice(traces) : traces.map((_, at) => at));
    });
    const label = el("span", { class: "what" }, `${traces.length} samplers`);
    const group = { class: "samplers", role: "group", "aria-label": "Samplers" };
    this.element = el("div", group, label, ...this.buttons, this.all);
    this.draw();
  }

  /**
   * @param {Entry} trace
   * @param {number} at
   */
  button({ sampler, right }, at) {
    const name = visible(sampler);
    const made = el("button", { type: "button", title: `Show or hide ${name}` });
    if (right !== null) {
      const sign = el("span", { class: right ? "right" : "wrong", "aria-hidden": "true" }, right ? "✓" : "✗");
      made.append(sign, el("span", { class: "spoken" }, right ? "right: " : "wrong: "));
    }
    made.append(name);
    made.addEventListener("click", () => this.toggle(at));
    return made;
  }

  /**
   * One trace at least stays.
   * @param {number} at
   */
  toggle(at) {
    const chosen = new Set(this.chosen);
    if (!chosen.delete(at)) chosen.add(at);
    if (chosen.size) this.choose(Array.from(chosen).sort((a, b) => a - b));
  }

  /** @param {number[]} chosen */
  choose(chosen) {
    this.chosen = new Set(chosen);
    this.draw();
    this.onChange(chosen);
  }

  draw() {
    this.buttons.forEach((made, at) => setAttributes(made, { "aria-pressed": String(this.chosen.has(at)) }));
    this.all.textContent = this.chosen.size === this.buttons.length ? "show few" : "show all";
  }
}
