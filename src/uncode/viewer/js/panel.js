/** One trace of a view: title, facts, canvas, order chart. */

import { CanvasView } from "./canvas.js";
import { OrderChart } from "./charts.js";
import { el, svg } from "./dom.js";
import { percent, visible } from "./text.js";

/** @typedef {import("./colour.js").Colouring} Colouring */
/** @typedef {import("./model.js").TraceModel} TraceModel */

export class Panel {
  /**
   * @param {TraceModel} model
   * @param {number} number
   * @param {Colouring} colouring
   * @param {(offset: number | null, isPinned: boolean) => void} onActive
   */
  constructor(model, number, colouring, onActive) {
    this.model = model;
    this.filled = model.finalCells.filter((cell) => cell.kind === "filled").length;
    const title = visible(model.title) || `trace ${number + 1}`;
    this.canvas = new CanvasView(model, colouring, `Canvas of ${title}`, onActive);
    this.chart = new OrderChart(model);
    this.status = el("p", { class: "status" });
    const key = svg("svg", { viewBox: "0 0 24 8", class: "key", "aria-hidden": "true" });
    key.append(svg("path", { d: "M1 4H23", class: `line trace-${number % 6}` }));
    this.element = el(
      "section",
      { class: "trace", "aria-label": title },
      el("header", {}, key, el("h2", {}, title), ...verdictOf(model)),
      el("p", { class: "summary" }, visible(model.summary.join(" · "))),
      this.canvas.element,
      this.status,
      this.chart.element,
    );
  }

  /** @param {number} time */
  moveTo(time) {
    this.canvas.moveTo(time);
    this.chart.moveTo(time);
    const { written, words, trivial } = this.model.counts[time];
    const trivialShare = words > 0 ? ` · ${percent(trivial / words)} trivial` : "";
    const step = time === 0 ? "before the first step" : `after step ${time - 1}`;
    const filled = time === this.model.forwards && this.filled ? `, ${this.filled} filled` : "";
    this.status.textContent = `${step} · ${written} of ${this.model.toCommit} committed${filled}${trivialShare}`;
  }
}

/**
 * @param {TraceModel} model
 * @returns {Node[]}
 */
function verdictOf(model) {
  if (!model.verdict) return [];
  const { right, reason } = model.verdict;
  const text = `${right ? "✓ right" : "✗ wrong"}${reason ? `: ${visible(reason)}` : ""}`;
  return [el("span", { class: `verdict ${right ? "right" : "wrong"}` }, text)];
}
