/**
 * A trace as the viewer needs it: the cells of the canvas, and what each forward changed.
 *
 * A model is made from a finished row of a trace (`TraceModel.fromRow`) or grows step by step (`append`). Time counts
 * forwards: at time 0 nothing is written, at time `forwards` the last forward is done.
 */

import { offsetsOf, stepsOfRow } from "./row.js";
import { isTrivial } from "./text.js";

/** @typedef {import("./row.js").Row} Row */

/**
 * What was recorded when a token was committed.
 * @typedef {object} Belief
 * @property {number | null} [logp]
 * @property {number | null} [entropy]
 * @property {number | null} [margin]
 * @property {number | null} [score]
 * @property {Record<string, number | null>} [terms]
 * @property {number | null} [runner_up] the best offset that the same step left masked
 */

/** @typedef {{ offset: number, token: number, text: string } & Belief} Commit */

/**
 * One forward.
 * @typedef {object} Step
 * @property {Commit[]} commits
 * @property {number} [step]
 * @property {number[]} [erased] offsets that a remasker took back after the commits
 * @property {number | null} [mean_entropy]
 * @property {string[]} [draft] the proposal for every offset
 */

/** @typedef {"masked" | "given" | "written" | "filled" | "erased"} Kind */

/**
 * What stands at an offset.
 * @typedef {object} Cell
 * @property {Kind} kind
 * @property {string} text
 * @property {number} token
 * @property {number} step the forward that wrote it; -1 if none did
 * @property {boolean} isEos
 * @property {boolean} isTrivial
 * @property {Belief | null} belief null where none was recorded
 */

/** @typedef {{ offset: number, before: Cell, after: Cell }} Change */
/** @typedef {{ written: number, words: number, trivial: number }} Counts */
/** @typedef {{ step: number, offset: number, isErasure: boolean }} Point */
/** @typedef {{ right: boolean, reason: string }} Verdict */
/** @typedef {{ offset: number, token: number, text: string }} Token */
/** @typedef {"running" | "finished" | "cancelled" | "failed"} State */

/**
 * @typedef {object} Start
 * @property {number} length
 * @property {string} [title]
 * @property {string} [prompt]
 * @property {string} [lead]
 * @property {string[]} [summary]
 * @property {Verdict | null} [verdict]
 * @property {boolean} [isConstrained]
 * @property {Iterable<number>} [eosIds]
 * @property {Iterable<Token>} [given]
 */

const GIVEN = -1;
const FILLED = -2;

/** @type {Cell} */
const MASKED = { kind: "masked", text: "", token: -1, step: -1, isEos: false, isTrivial: false, belief: null };

export class TraceModel {
  /** @param {Start} start */
  constructor(start) {
    this.title = start.title ?? "";
    this.prompt = start.prompt ?? "";
    this.summary = start.summary ?? [];
    this.verdict = start.verdict ?? null;
    /** What stands on the canvas before offset 0: the text before the first gap. */
    this.lead = start.lead ?? "";
    this.length = start.length;
    /** Whether a constraint says what the text is. */
    this.isConstrained = start.isConstrained ?? false;
    /** @type {Set<number>} */
    this.eosIds = new Set(start.eosIds ?? []);
    /** Cells at the last time. @type {Cell[]} */
    this.cells = new Array(start.length).fill(MASKED);
    for (const { offset, token, text } of start.given ?? []) this.cells[offset] = this.cell("given", token, text);
    /** Cells at time 0. */
    this.start = this.cells.slice();
    this.toCommit = this.start.filter((cell) => cell.kind === "masked").length;
    /** Masked offsets that forwards fill; the stop rule fills the others. */
    this.byForwards = this.toCommit;
    /** What forward s changed. @type {Change[][]} */
    this.deltas = [];
    /** @type {(number | null)[]} */
    this.meanEntropy = [];
    /** What stands at each time. @type {Counts[]} */
    this.counts = [{ written: 0, words: 0, trivial: 0 }];
    /** Commits before each forward. @type {number[]} */
    this.commitsBefore = [];
    this.commits = 0;
    /** Every write and erasure. @type {Point[]} */
    this.points = [];
    /** The proposals of each forward, if they were recorded. @type {string[][]} */
    this.drafts = [];
    /** Offsets of the answer. @type {Set<number>} */
    this.answer = new Set();
    /** The texts that the cells will hold, so that masked cells have their width; empty while a decode runs. */
    this.finalCells = /** @type {Cell[]} */ ([]);
    /** @type {State} */
    this.state = "running";
    /** Why the decode failed. */
    this.error = "";
  }

  get forwards() {
    return this.deltas.length;
  }

  get isFinished() {
    return this.state === "finished";
  }

  /**
   * @param {Kind} kind
   * @param {number} token
   * @param {string} text
   * @param {number} [step]
   * @param {Belief | null} [belief]
   * @returns {Cell}
   */
  cell(kind, token, text, step = -1, belief = null) {
    return { kind, token, text, step, belief, isEos: this.eosIds.has(token), isTrivial: isTrivial(text) };
  }

  /**
   * Add the next forward.
   * @param {Step} step
   */
  append(step) {
    this.check(step);
    const number = this.forwards;
    /** @type {Change[]} */
    const delta = [];
    this.commitsBefore.push(this.commits);
    for (const { offset, token, text, ...belief } of step.commits) {
      const known = belief.logp !== undefined; // null where it is not finite
      this.change(delta, offset, this.cell("written", token, text, number, known ? belief : null));
      this.points.push({ step: number, offset, isErasure: false });
    }
    this.commits += step.commits.length;
    for (const offset of step.erased ?? []) {
      this.change(delta, offset, { ...this.cells[offset], kind: "erased" });
      this.points.push({ step: number, offset, isErasure: true });
    }
    this.deltas.push(delta);
    this.meanEntropy.push(step.mean_entropy ?? null);
    if (step.draft) this.drafts.push(step.draft);
    this.counts.push(counted(this.counts[number], delta));
  }

  /**
   * End the decode. `filled` are tokens that the stop rule wrote without a forward; they appear at the last time.
   * @param {Iterable<Token>} [filled]
   */
  finish(filled = []) {
    this.checkRunning();
    const tokens = Array.from(filled);
    if (tokens.length && !this.forwards) this.append({ commits: [] }); // what fills the canvas needs a time
    const last = this.deltas[this.forwards - 1];
    for (const { offset, token, text } of tokens) {
      this.change(last, offset, this.cell("filled", token, text));
      this.byForwards -= 1;
    }
    this.finalCells = this.cells.slice();
    this.state = "finished";
  }

  /** The decode was cancelled: what is masked stays masked. */
  cancel() {
    this.checkRunning();
    this.state = "cancelled";
  }

  /**
   * The decode failed.
   * @param {string} error one sentence
   */
  fail(error) {
    this.checkRunning();
    this.state = "failed";
    this.error = error;
  }

  checkRunning() {
    if (this.state !== "running") throw new Error(`the trace is ${this.state}: make a new one for another decode.`);
  }

  /**
   * A step of a stream comes from elsewhere: refuse one that does not fit before anything is changed.
   * @param {Step} step
   */
  check({ commits, erased = [] }) {
    this.checkRunning();
    const offsets = commits.map(({ offset }) => offset).concat(erased);
    const wrong = offsets.find((offset) => !(Number.isInteger(offset) && offset >= 0 && offset < this.length));
    if (wrong !== undefined) {
      throw new RangeError(`there is no offset ${wrong}: the canvas has ${this.length} tokens, counted from 0.`);
    }
  }

  /**
   * @param {Change[]} delta
   * @param {number} offset
   * @param {Cell} after
   */
  change(delta, offset, after) {
    delta.push({ offset, before: this.cells[offset], after });
    this.cells[offset] = after;
  }

  /**
   * Whether the constraint left one token there: nothing else has a probability then.
   * @param {Cell} cell
   */
  isForced(cell) {
    return this.isConstrained && cell.kind === "written" && cell.belief?.logp === 0 && cell.belief.entropy === 0;
  }

  /**
   * The cells that differ between two times. Only the forwards between them are read.
   * @param {number} from
   * @param {number} to
   * @returns {Map<number, Cell>}
   */
  changes(from, to) {
    /** @type {Map<number, Cell>} */
    const found = new Map();
    for (let step = from; step < to; step += 1) {
      for (const change of this.deltas[step]) found.set(change.offset, change.after);
    }
    for (let step = from - 1; step >= to; step -= 1) {
      const delta = this.deltas[step];
      for (let at = delta.length - 1; at >= 0; at -= 1) found.set(delta[at].offset, delta[at].before);
    }
    return found;
  }

  /**
   * When a token was committed, from 0 (first) to 1 (last): the share of the commits before it. The number of forwards
   * is unknown while a decode runs, so time is not counted in forwards.
   * @param {Cell} cell
   */
  commitTime(cell) {
    return this.commitsBefore[cell.step] / Math.max(this.byForwards, this.commits, 1);
  }

  /**
   * The first and the last forward that wrote a token of these offsets; null if none did.
   * @param {Iterable<number>} offsets
   * @returns {[number, number] | null}
   */
  stepsOf(offsets) {
    const steps = Array.from(offsets, (offset) => this.cells[offset].step).filter((step) => step >= 0);
    return steps.length ? [Math.min(...steps), Math.max(...steps)] : null;
  }

  /**
   * The model of a finished row.
   * @param {Row} row
   */
  static fromRow(row) {
    const texts = row.generated_texts ?? row.generated_ids.map((id) => `#${id}`);
    const tokens = row.generated_ids.map((token, offset) => ({ offset, token, text: texts[offset] }));
    const model = new TraceModel({
      length: tokens.length,
      title: row.title,
      prompt: row.prompt_text,
      lead: row.lead,
      summary: row.summary,
      verdict: row.verdict,
      isConstrained: Boolean(row.constraint),
      eosIds: row.special_ids.filter((id) => id !== row.mask_id),
      given: tokens.filter(({ offset }) => row.commit_step[offset] === GIVEN),
    });
    model.answer = offsetsOf(row.answer_span, texts);
    for (const step of stepsOfRow(row, tokens)) model.append(step);
    model.finish(tokens.filter(({ offset }) => row.commit_step[offset] === FILLED));
    return model;
  }
}

/**
 * What stands after a forward: tokens, tokens other than EOS, and trivial tokens among those.
 * @param {Counts} before
 * @param {Change[]} delta
 * @returns {Counts}
 */
function counted(before, delta) {
  const counts = { ...before };
  /** @type {(cell: Cell, sign: number) => void} */
  const count = (cell, sign) => {
    if (cell.kind !== "written") return;
    counts.written += sign;
    if (cell.isEos) return;
    counts.words += sign;
    if (cell.isTrivial) counts.trivial += sign;
  };
  for (const change of delta) {
    count(change.before, -1);
    count(change.after, 1);
  }
  return counts;
}

/**
 * The first offset at which the texts of finished traces differ; null if they agree or are not finished.
 * @param {TraceModel[]} models
 * @returns {number | null}
 */
export function firstDivergence(models) {
  if (models.length < 2 || !models.every((model) => model.isFinished)) return null;
  const shortest = Math.min(...models.map((model) => model.length));
  for (let offset = 0; offset < shortest; offset += 1) {
    const text = models[0].cells[offset].text;
    if (models.some((model) => model.cells[offset].text !== text)) return offset;
  }
  return null;
}
