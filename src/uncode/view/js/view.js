/**
 * The viewer: one or more traces of a prompt, in step, with one transport.
 *
 * `new TraceView({ rows: [row] })` shows finished rows of traces. `view.element` goes into the page.
 * `new TraceView({ models: [new TraceModel({ length, prompt })] })` shows a decode that runs, from an empty canvas:
 * `append(step)` adds a forward, and the view follows unless the reader has moved back. `finish(filled)`, `cancel()` or
 * `fail(error)` ends it; `describe({ summary, verdict })` may be called at any time. Each takes the number of the trace
 * as its last argument. The server's live page builds on these names: docs/viewer.md describes them.
 */

import { COLOURS, Colouring } from "./colour.js";
import { EntropyChart } from "./charts.js";
import { Details } from "./details.js";
import { el } from "./dom.js";
import { divergenceText, shadeKey, signKey } from "./key.js";
import { firstDivergence, TraceModel } from "./model.js";
import { Panel } from "./panel.js";
import { visible } from "./text.js";
import { Transport } from "./transport.js";

/** @typedef {import("./colour.js").ColourName} ColourName */
/** @typedef {import("./row.js").Row} Row */
/** @typedef {import("./model.js").Step} Step */
/** @typedef {import("./model.js").Token} Token */
/** @typedef {import("./model.js").Verdict} Verdict */
/** @typedef {"step" | "fraction"} Sync */

const COLOUR_NAMES = /** @type {ColourName[]} */ (Object.keys(COLOURS));

export class TraceView {
  /** @param {{ rows?: Row[], models?: TraceModel[], withPrompt?: boolean }} input */
  constructor({ rows = [], models = rows.map((row) => TraceModel.fromRow(row)), withPrompt = true }) {
    this.models = models;
    /** @type {Sync} */
    this.sync = "step";
    /** @type {{ panel: number, offset: number, isPinned: boolean } | null} */
    this.active = null;
    /** @type {number | null} */
    this.divergence = null;
    this.details = new Details();
    this.transport = new Transport((position) => this.show(position));
    this.entropy = new EntropyChart(models);
    this.colouring = new Colouring("time", models);
    this.panels = models.map(
      (model, at) => new Panel(model, at, this.colouring, (offset, isPinned) => this.point(at, offset, isPinned)),
    );
    this.legend = el("span", { class: "legend" });
    this.signs = el("span", { class: "signs" });
    this.difference = el("p", { class: "difference" });
    this.draftBox = el("input", { type: "checkbox" });
    this.draftLabel = el("label", {}, this.draftBox, " drafts");
    this.colourSelect = select("Colour by", COLOUR_NAMES.map((name) => [name, COLOURS[name]]));
    this.syncSelect = select("Keep in step by", [["step", "step"], ["fraction", "fraction"]]);
    this.element = this.build(withPrompt);
    this.setColour("time");
    this.markDivergence();
    this.measure();
    this.transport.move(this.transport.length);
    this.onScroll = () => this.active && this.showDetails();
    addEventListener("scroll", this.onScroll, { passive: true });
    /** @param {Event} event */
    this.onPrint = (event) => this.panels.forEach(({ canvas }) => canvas.setPrinted(event.type === "beforeprint"));
    for (const name of ["beforeprint", "afterprint"]) addEventListener(name, this.onPrint);
    this.element.addEventListener("keydown", (event) => {
      if (this.handleKey(event)) event.preventDefault();
    });
  }

  /** @param {boolean} withPrompt */
  build(withPrompt) {
    const prompt = visible(this.models[0]?.prompt ?? "");
    const { buttons, range, readout } = this.transport;
    return el(
      "div",
      { class: `view traces-${Math.min(this.models.length, 3)}` },
      ...(withPrompt && prompt.trim() ? [promptBlock(prompt)] : []),
      el(
        "div",
        { class: "transport" },
        el("div", { class: "scrub" }, this.entropy.element, range),
        el("div", { class: "row" }, buttons, readout, this.settings()),
      ),
      el("div", { class: "key-row" }, this.legend, this.signs),
      this.difference,
      el("div", { class: "panels" }, ...this.panels.map((panel) => panel.element)),
      this.details.element,
    );
  }

  settings() {
    this.colourSelect.addEventListener("change", () => this.setColour(COLOUR_NAMES[this.colourSelect.selectedIndex]));
    const row = el("div", { class: "settings" });
    row.append(setting("speed", this.transport.speedSelect), setting("colour", this.colourSelect));
    if (this.models.length > 1) {
      this.syncSelect.addEventListener("change", () => this.setSync(/** @type {Sync} */ (this.syncSelect.value)));
      row.append(setting("in step by", this.syncSelect));
    }
    this.draftBox.addEventListener("change", () => {
      for (const panel of this.panels) panel.canvas.showDrafts(this.draftBox.checked);
    });
    row.append(this.draftLabel);
    return row;
  }

  /** Mark the first difference, which is known when all traces are finished. */
  markDivergence() {
    this.divergence = firstDivergence(this.models);
    for (const panel of this.panels) panel.canvas.markDivergence(this.divergence);
    this.difference.hidden = this.divergence === null;
    this.difference.textContent = this.divergence === null ? "" : divergenceText(this.models, this.divergence);
  }

  /** Set the length of the transport, draw the entropy, and show the signs and settings that these traces need. */
  measure() {
    this.transport.setLength(Math.max(...this.models.map((model) => model.forwards)));
    this.entropy.update((model, step) => this.shareOf(model, step), this.divergence);
    this.signs.replaceChildren(...signKey(this.models, this.divergence));
    this.draftLabel.hidden = !this.models.some((model) => model.drafts.length);
  }

  /**
   * Where a step of a trace stands on the scrubber, from 0 to 1.
   * @param {TraceModel} model
   * @param {number} step
   */
  shareOf(model, step) {
    return (step + 1) / Math.max(1, this.sync === "step" ? this.transport.length : model.forwards);
  }

  /**
   * The time of a trace at a position of the scrubber.
   * @param {TraceModel} model
   * @param {number} position
   */
  timeOf(model, position) {
    if (this.sync === "step") return Math.min(position, model.forwards);
    return Math.round((position * model.forwards) / Math.max(1, this.transport.length));
  }

  /** @param {number} position */
  show(position) {
    this.entropy.moveTo(position / Math.max(1, this.transport.length));
    for (const panel of this.panels) panel.moveTo(this.timeOf(panel.model, position));
    if (this.active) this.showDetails();
  }

  /** @param {number} position */
  seek(position) {
    this.transport.jump(position);
  }

  /**
   * Colour, speed and kind of step as in another view.
   * @param {TraceView} other
   */
  takeSettings(other) {
    this.setColour(other.colouring.name);
    this.setSync(other.sync);
    this.transport.setSpeed(other.transport.speed);
  }

  /** @param {Sync} sync */
  setSync(sync) {
    this.sync = sync;
    this.syncSelect.value = sync;
    this.measure();
    this.transport.move(this.transport.position);
  }

  /** @param {ColourName} name */
  setColour(name) {
    this.colouring = new Colouring(name, this.models);
    this.colourSelect.value = name;
    for (const panel of this.panels) panel.canvas.recolour(this.colouring);
    this.legend.replaceChildren(...shadeKey(this.colouring));
  }

  /**
   * The reader points at a token, or at none. A pinned token stays until another is pinned.
   * @param {number} panel
   * @param {number | null} offset
   * @param {boolean} isPinned
   */
  point(panel, offset, isPinned) {
    if (this.active?.isPinned && !isPinned) return;
    if (this.active) this.mark(this.active.panel, null, null);
    this.active = offset === null ? null : { panel, offset, isPinned };
    if (this.active) this.showDetails();
    else this.details.hide();
  }

  showDetails() {
    if (!this.active) return;
    const { panel, offset } = this.active;
    const { canvas, model } = this.panels[panel];
    const cell = canvas.cells[offset];
    this.mark(panel, offset, cell.belief?.runner_up ?? null);
    this.details.show(model, offset, cell, canvas.tokens[offset]);
  }

  /**
   * @param {number} panel
   * @param {number | null} offset
   * @param {number | null} runnerUp
   */
  mark(panel, offset, runnerUp) {
    this.panels[panel].canvas.mark(offset, runnerUp);
    this.panels[panel].chart.point(offset);
  }

  /**
   * Act on a key; whether it meant something.
   * @param {KeyboardEvent} event
   */
  handleKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "Escape" && this.active) {
      this.point(this.active.panel, null, true);
      return true;
    }
    const target = event.target;
    if (target instanceof HTMLSelectElement) return false;
    if (target instanceof HTMLInputElement && event.key !== " ") return false;
    if (target instanceof HTMLInputElement && target.type !== "range") return false;
    if (target instanceof HTMLButtonElement && event.key === " ") return false;
    const colour = COLOUR_NAMES[Number(event.key) - 1];
    if (colour) this.setColour(colour);
    return Boolean(colour) || this.transport.press(event.key);
  }

  /**
   * Add a forward to a trace that runs.
   * @param {Step} step
   * @param {number} [at] which trace
   */
  append(step, at = 0) {
    this.change(at, (model) => model.append(step));
  }

  /**
   * End a trace that runs.
   * @param {Iterable<Token>} [filled] tokens of the stop rule
   * @param {number} [at]
   */
  finish(filled = [], at = 0) {
    this.change(at, (model) => model.finish(filled), true);
  }

  /**
   * Show a decode that has ended with all that its trace records.
   * @param {Row} row
   * @param {number} [at]
   */
  complete(row, at = 0) {
    this.change(at, (model) => Object.assign(model, TraceModel.fromRow(row)), true);
  }

  /**
   * The decode was cancelled. Its masks stay masks.
   * @param {number} [at]
   */
  cancel(at = 0) {
    this.change(at, (model) => model.cancel());
  }

  /**
   * The decode failed.
   * @param {string} error one sentence, which is shown below the canvas
   * @param {number} [at]
   */
  fail(error, at = 0) {
    this.change(at, (model) => model.fail(error));
  }

  /**
   * Set what stands above the canvas.
   * @param {{ summary?: string[], verdict?: Verdict | null }} facts
   * @param {number} [at]
   */
  describe({ summary, verdict }, at = 0) {
    this.change(at, (model) => {
      if (summary !== undefined) model.summary = summary;
      if (verdict !== undefined) model.verdict = verdict;
    });
  }

  /**
   * Change a model, and draw it again. The view follows if it stood at the end.
   * @param {number} at
   * @param {(model: TraceModel) => void} act
   * @param {boolean} [isAtLast] whether the texts of all cells are known now
   */
  change(at, act, isAtLast = false) {
    const { transport } = this;
    const follows = transport.position === transport.length && !transport.isPlaying;
    act(this.models[at]);
    if (isAtLast) {
      this.panels[at].canvas.restart();
      this.markDivergence();
      this.setColour(this.colouring.name); // the scale may depend on all tokens
    }
    this.measure();
    this.panels[at].update();
    transport.move(follows ? transport.length : transport.position);
  }

  /** Stop the replay. Call it before the element is removed. */
  close() {
    this.transport.pause();
    removeEventListener("scroll", this.onScroll);
    for (const name of ["beforeprint", "afterprint"]) removeEventListener(name, this.onPrint);
    for (const panel of this.panels) panel.canvas.close();
  }
}

/** @param {string} text */
function promptBlock(text) {
  return el("details", { class: "prompt", open: text.length < 1200 }, el("summary", {}, "prompt"), el("pre", {}, text));
}

/**
 * @param {string} name
 * @param {HTMLSelectElement} choice
 */
function setting(name, choice) {
  return el("label", {}, el("span", {}, name), choice);
}

/**
 * @param {string} label
 * @param {string[][]} options values and their texts
 */
function select(label, options) {
  return el("select", { "aria-label": label }, ...options.map(([value, text]) => el("option", { value }, text)));
}
