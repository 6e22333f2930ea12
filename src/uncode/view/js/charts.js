/** Two small charts: the order of a trace (offset against step), and the mean entropy of all traces. */

import { el, setAttributes, svg } from "./dom.js";
import { number } from "./text.js";

/** @typedef {import("./model.js").TraceModel} TraceModel */

const WIDTH = 1000;
const HEIGHT = 100;
/** Room for the dots at the edges, in units of the chart. */
const EDGE = 3;

/**
 * Every commit as a dot: steps from left to right, offsets from top to bottom. A veil makes the dots of later steps
 * faint. In a replay only the veil moves, and the browser does not paint the dots again.
 */
export class OrderChart {
  /** @param {TraceModel} model */
  constructor(model) {
    this.model = model;
    this.answer = svg("path", { class: "answer-band" });
    this.written = dots("dots");
    this.erased = dots("dots erasures");
    this.pointed = dots("dots pointed");
    this.svg = chart({ role: "img" }, this.answer, this.written, this.erased);
    this.veil = el("div", { class: "veil" });
    const above = chart({ "aria-hidden": "true" }, this.pointed);
    const plot = el("div", { class: "plot" }, this.svg, this.veil, above);
    this.last = el("span", {});
    this.span = el("span", {});
    const axis = el("div", { class: "axis", "aria-hidden": "true" }, el("span", {}, "step 0"), this.last);
    const side = el("div", { class: "side", "aria-hidden": "true" }, el("span", {}, "0"), this.span);
    const caption = el("p", { class: "most", "aria-hidden": "true" }, "offset of each commit, by step");
    this.element = el("div", { class: "order" }, caption, side, plot, axis);
    this.update();
  }

  /** Draw the dots of all steps so far. */
  update() {
    const { points, answer, forwards, length, title } = this.model;
    const writes = points.filter((point) => !point.isErasure);
    this.written.setAttribute("d", writes.map((point) => this.dot(point.step, point.offset)).join(""));
    const erasures = points.filter((point) => point.isErasure);
    this.erased.setAttribute("d", erasures.map((point) => this.dot(point.step, point.offset)).join(""));
    this.answer.setAttribute("d", band(Array.from(answer), length));
    this.last.textContent = `step ${Math.max(0, forwards - 1)}`;
    this.span.textContent = String(length - 1);
    setAttributes(this.svg, {
      "aria-label": `Order of ${title}: ${writes.length} commits and ${erasures.length} erasures in ${forwards} steps.`,
    });
  }

  /**
   * @param {number} step
   * @param {number} offset
   */
  dot(step, offset) {
    return `M${this.x(step).toFixed(1)} ${y(offset, this.model.length)}h0`;
  }

  /** @param {number} step */
  x(step) {
    return EDGE + ((WIDTH - 2 * EDGE) * (step + 0.5)) / Math.max(1, this.model.forwards);
  }

  /** @param {number} time */
  moveTo(time) {
    const done = time === 0 ? 0 : this.x(time - 0.5) / WIDTH;
    this.veil.style.transform = `scaleX(${1 - done})`;
  }

  /** @param {number | null} offset the token that the reader points at */
  point(offset) {
    const step = offset === null ? -1 : this.model.cells[offset].step;
    this.pointed.setAttribute("d", offset === null || step < 0 ? "" : this.dot(step, offset));
  }
}

/** The mean entropy of the masked positions, one line per trace, with the position of the replay. */
export class EntropyChart {
  /** @param {TraceModel[]} models */
  constructor(models) {
    this.models = models;
    this.lines = models.map((_, at) => svg("path", { class: `line trace-${at % 6}` }));
    this.ticks = svg("path", { class: "ticks" });
    this.head = el("div", { class: "head" });
    this.svg = chart({ role: "img" }, this.ticks, ...this.lines);
    this.most = el("p", { class: "most", "aria-hidden": "true" });
    this.element = el("div", { class: "entropy" }, this.most, el("div", { class: "plot" }, this.svg, this.head));
  }

  /**
   * Draw the lines.
   * @param {(model: TraceModel, step: number) => number} shareOf where a step stands, from 0 to 1
   * @param {number | null} divergence
   */
  update(shareOf, divergence) {
    const known = this.models.flatMap((model) => model.meanEntropy).filter((value) => value !== null);
    const most = known.reduce((a, b) => Math.max(a, b), 0);
    this.models.forEach((model, at) => this.lines[at].setAttribute("d", line(model, most, shareOf)));
    this.most.textContent = most > 0 ? `mean entropy of the masks, at most ${number(most)} nats` : "";
    const ticks = divergence === null ? [] : this.models.map((model) => tick(model, divergence, shareOf));
    this.ticks.setAttribute("d", ticks.join(""));
    const label = `Mean entropy of the masked positions by step, at most ${number(most)} nats.`;
    setAttributes(this.svg, { "aria-label": label });
  }

  /** @param {number} share */
  moveTo(share) {
    this.head.style.transform = `translateX(${100 * share}%)`;
  }
}

/**
 * @param {import("./dom.js").Attributes} attributes
 * @param {...SVGElement} children
 */
function chart(attributes, ...children) {
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", ...attributes }, ...children);
}

/** @param {string} name */
function dots(name) {
  return svg("path", { class: name, "vector-effect": "non-scaling-stroke" });
}

/**
 * @param {number} offset
 * @param {number} length
 */
function y(offset, length) {
  return (EDGE + ((HEIGHT - 2 * EDGE) * offset) / Math.max(1, length - 1)).toFixed(1);
}

/**
 * @param {number[]} offsets
 * @param {number} length
 */
function band(offsets, length) {
  if (!offsets.length) return "";
  return `M0 ${y(offsets[0] - 0.5, length)}H${WIDTH}V${y(offsets[offsets.length - 1] + 0.5, length)}H0Z`;
}

/**
 * @param {TraceModel} model
 * @param {number} most
 * @param {(model: TraceModel, step: number) => number} shareOf
 */
function line(model, most, shareOf) {
  let path = "";
  let isDrawn = false;
  model.meanEntropy.forEach((value, step) => {
    if (value !== null) {
      const height = HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (most > 0 ? value / most : 0);
      path += `${isDrawn ? "L" : "M"}${(shareOf(model, step) * WIDTH).toFixed(1)} ${height.toFixed(1)}`;
    }
    isDrawn = value !== null;
  });
  return path;
}

/**
 * @param {TraceModel} model
 * @param {number} offset
 * @param {(model: TraceModel, step: number) => number} shareOf
 */
function tick(model, offset, shareOf) {
  const step = model.cells[offset].step;
  return step < 0 ? "" : `M${(shareOf(model, step) * WIDTH).toFixed(1)} 0V${HEIGHT}`;
}
