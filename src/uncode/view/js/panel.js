/** One trace of a view: title, facts, canvas, order chart. */

import { CanvasView } from "./canvas.js";
import { OrderChart } from "./charts.js";
import { el, setAttributes, svg } from "./dom.js";
import { percent, visible } from "./text.js";

/** @typedef {import("./colour.js").Colouring} Colouring */
/** @typedef {import("./model.js").TraceModel} TraceModel */

/** @type {Record<string, string>} */
const ENDINGS = { cancelled: "Cancelled: the rest stays masked.", failed: "Failed: " };

export class Panel {
  /**
   * @param {TraceModel} model
   * @param {number} number
   * @param {Colouring} colouring
   * @param {(offset: number | null, isPinned: boolean) => void} onActive
   */
  constructor(model, number, colouring, onActive) {
    this.model = model;
    this.filled = 0;
    const title = visible(model.title) || `trace ${number + 1}`;
    this.canvas = new CanvasView(model, colouring, `Canvas of ${title}`, onActive);
    this.chart = new OrderChart(model);
    this.status = el("p", { class: "status" });
    this.state = el("p", { class: "state", role: "status", hidden: true });
    this.summary = el("p", { class: "summary" });
    this.verdict = el("span", { class: "verdict" });
    const key = svg("svg", { viewBox: "0 0 24 8", class: "key", "aria-hidden": "true" });
    key.append(svg("path", { d: "M1 4H23", class: `line trace-${number % 6}` }));
    this.element = el(
      "section",
      { class: "trace", "aria-label": title },
      el("header", {}, key, el("h2", {}, title), this.verdict),
      this.summary,
      this.canvas.frame,
      this.state,
      this.status,
      this.chart.element,
    );
    this.update();
  }

  /** Draw what a model that runs has changed: chart, summary, verdict, and how the decode ended. */
  update() {
    const { model } = this;
    this.filled = model.finalCells.filter((cell) => cell.kind === "filled").length;
    this.summary.textContent = visible(model.summary.join(" · "));
    this.showVerdict();
    this.state.hidden = !(model.state in ENDINGS);
    this.state.textContent = this.state.hidden ? "" : ENDINGS[model.state] + visible(model.error);
    setAttributes(this.element, { "data-state": model.state, "aria-busy": String(model.state === "running") });
    this.chart.update();
  }

  showVerdict() {
    const { verdict } = this.model;
    this.verdict.hidden = !verdict;
    if (!verdict) return;
    const { right, reason } = verdict;
    this.verdict.className = `verdict ${right ? "right" : "wrong"}`;
    this.verdict.textContent = `${right ? "✓ right" : "✗ wrong"}${reason ? `: ${visible(reason)}` : ""}`;
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
