/**
 * The viewer: one or more traces of a prompt, in step, with one transport.
 *
 * `new TraceView({ rows: [row] })` shows finished rows of traces.
 * `new TraceView({ models: [new TraceModel({ length })] })` shows a decode that runs: `view.append({ commits: [...] })`
 * adds a forward, and the view follows unless the reader has moved back. `view.element` goes into the page.
 */

import { COLOURS, Colouring } from "./colour.js";
import { EntropyChart } from "./charts.js";
import { Details } from "./details.js";
import { el } from "./dom.js";
import { firstDivergence, TraceModel } from "./model.js";
import { Panel } from "./panel.js";
import { quoted, visible } from "./text.js";
import { Transport } from "./transport.js";

/** @typedef {import("./colour.js").ColourName} ColourName */
/** @typedef {import("./model.js").Row} Row */
/** @typedef {import("./model.js").Step} Step */
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
    this.divergence = firstDivergence(models);
    this.details = new Details();
    this.transport = new Transport((position) => this.show(position));
    this.entropy = new EntropyChart(models);
    const colouring = new Colouring("time", models);
    this.panels = models.map(
      (model, at) => new Panel(model, at, colouring, (offset, isPinned) => this.point(at, offset, isPinned)),
    );
    this.legend = el("span", { class: "legend" });
    this.colourSelect = select("Colour by", COLOUR_NAMES.map((name) => [name, COLOURS[name]]));
    this.element = this.build(withPrompt);
    this.setColour("time");
    this.panels.forEach((panel) => panel.canvas.markDivergence(this.divergence));
    this.measure();
    this.transport.move(this.transport.length);
    this.onScroll = () => this.active && this.showDetails();
    addEventListener("scroll", this.onScroll, { passive: true });
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
      el("div", { class: "key-row" }, this.legend, this.signs()),
      ...this.divergenceNote(),
      el("div", { class: "panels" }, ...this.panels.map((panel) => panel.element)),
      this.details.element,
    );
  }

  settings() {
    this.colourSelect.addEventListener("change", () => this.setColour(COLOUR_NAMES[this.colourSelect.selectedIndex]));
    const row = el("div", { class: "settings" });
    row.append(setting("speed", this.transport.speedSelect), setting("colour", this.colourSelect));
    if (this.models.length > 1) {
      const sync = select("Keep in step by", [["step", "step"], ["fraction", "fraction"]]);
      sync.addEventListener("change", () => this.setSync(/** @type {Sync} */ (sync.value)));
      row.append(setting("in step by", sync));
    }
    if (this.models.some((model) => model.drafts.length)) {
      const box = el("input", { type: "checkbox" });
      box.addEventListener("change", () => this.panels.forEach((panel) => panel.canvas.showDrafts(box.checked)));
      row.append(el("label", {}, box, " drafts"));
    }
    return row;
  }

  /** The signs that these traces use. */
  signs() {
    const signs = el("span", { class: "signs" });
    const cells = this.models.flatMap((model) => model.cells.concat(model.start));
    /** @type {(isThere: boolean, name: string, sign: string, meaning: string) => void} */
    const add = (isThere, name, sign, meaning) => {
      if (isThere) signs.append(el("span", {}, el("span", { class: `t ${name}` }, sign), ` ${meaning}`));
    };
    add(true, "masked", "ab", "masked");
    add(cells.some((cell) => cell.kind === "given"), "given", "ab", "given");
    add(cells.some((cell) => cell.isEos), "eos", "∎", "EOS");
    add(cells.some((cell) => cell.kind === "filled"), "filled", "∎", "filled by the stop rule");
    add(this.models.some((model) => model.points.some((point) => point.isErasure)), "erased", "ab", "erased");
    add(this.models.some((model) => model.answer.size > 0), "answer", "ab", "answer");
    add(this.divergence !== null, "divergence", "ab", "first difference");
    return signs;
  }

  /** @returns {Node[]} */
  divergenceNote() {
    const at = this.divergence;
    if (at === null) return [];
    const sides = this.models.map((model) => {
      const cell = model.cells[at];
      return `${visible(model.title)} has ${quoted(cell.text)}${cell.step >= 0 ? ` (step ${cell.step})` : ""}`;
    });
    return [el("p", { class: "difference" }, `First difference at offset ${at}: ${sides.join(", ")}.`)];
  }

  /** Set the length of the transport, and draw the entropy. */
  measure() {
    this.transport.setLength(Math.max(...this.models.map((model) => model.forwards)));
    this.entropy.update((model, step) => this.shareOf(model, step), this.divergence);
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

  /** @param {Sync} sync */
  setSync(sync) {
    this.sync = sync;
    this.measure();
    this.transport.move(this.transport.position);
  }

  /** @param {ColourName} name */
  setColour(name) {
    const colouring = new Colouring(name, this.models);
    this.colourSelect.value = name;
    for (const panel of this.panels) panel.canvas.recolour(colouring);
    const entries = colouring.legend();
    this.legend.replaceChildren(el("span", { class: "what" }, COLOURS[name]));
    this.legend.append(...entries.map(({ shade, label }) => el("span", { class: `t swatch s${shade}` }, label)));
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
    const isAtEnd = this.transport.position === this.transport.length && !this.transport.isPlaying;
    this.models[at].append(step);
    this.refresh(at, isAtEnd);
  }

  /**
   * End a trace that runs.
   * @param {Iterable<{ offset: number, token: number, text: string }>} [filled] tokens of the stop rule
   * @param {number} [at]
   */
  finish(filled = [], at = 0) {
    const { transport, models, panels } = this;
    const wasAt = transport.position;
    panels[at].canvas.moveTo(0);
    models[at].finish(filled);
    panels[at].canvas.drawMasked();
    this.refresh(at, wasAt === transport.length);
  }

  /**
   * @param {number} at
   * @param {boolean} isAtEnd
   */
  refresh(at, isAtEnd) {
    this.measure();
    this.panels[at].chart.update();
    this.transport.move(isAtEnd ? this.transport.length : this.transport.position);
  }

  /** Stop the replay. Call it before the element is removed. */
  close() {
    this.transport.pause();
    removeEventListener("scroll", this.onScroll);
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
