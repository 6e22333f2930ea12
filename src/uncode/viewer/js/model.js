/**
 * A trace as the viewer needs it: the cells of the canvas, and what each forward changed.
 *
 * A model is made from a finished row of a trace (`TraceModel.fromRow`) or grows step by step (`append`). Time counts
 * forwards: at time 0 nothing is written, at time `forwards` the last forward is done.
 */

import { isTrivial } from "./text.js";

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

/**
 * A row of a trace, as `Trace.row` writes it.
 * @typedef {object} Row
 * @property {string} [title]
 * @property {Verdict | null} [verdict]
 * @property {string[]} [summary]
 * @property {string} [prompt_text]
 * @property {number[]} generated_ids
 * @property {string[]} [generated_texts]
 * @property {number[]} commit_step
 * @property {number} forwards
 * @property {number[]} special_ids
 * @property {number} mask_id
 * @property {(number | null)[]} [logp]
 * @property {(number | null)[]} [entropy]
 * @property {(number | null)[]} [margin]
 * @property {(number | null)[]} [score]
 * @property {(number | null)[]} [runner_up]
 * @property {Record<string, (number | null)[]>} [terms]
 * @property {(number | null)[]} [mean_entropy]
 * @property {[number, number, number][]} [events]
 * @property {string[]} [event_texts]
 * @property {number[][]} [drafts]
 * @property {number[][]} [draft_changes] offset, token, offset, token, ... where the draft of a step is a new one
 * @property {Record<string, string>} [draft_texts]
 * @property {[number, number] | null} [answer_span]
 */

/**
 * @typedef {object} Start
 * @property {number} length
 * @property {string} [title]
 * @property {string} [prompt]
 * @property {string[]} [summary]
 * @property {Verdict | null} [verdict]
 * @property {Iterable<number>} [eosIds]
 * @property {Iterable<{ offset: number, token: number, text: string }>} [given]
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
    this.length = start.length;
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
  }

  get forwards() {
    return this.deltas.length;
  }

  /** Whether every mask is filled. */
  get isFinished() {
    return this.finalCells.length > 0;
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
    const number = this.forwards;
    /** @type {Change[]} */
    const delta = [];
    this.commitsBefore.push(this.commits);
    for (const { offset, token, text, ...belief } of step.commits) {
      const known = belief.logp !== undefined && belief.logp !== null;
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
   * @param {Iterable<{ offset: number, token: number, text: string }>} [filled]
   */
  finish(filled = []) {
    const last = this.deltas[this.forwards - 1];
    for (const { offset, token, text } of filled) {
      this.change(last, offset, this.cell("filled", token, text));
      this.byForwards -= 1;
    }
    this.finalCells = this.cells.slice();
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
      summary: row.summary,
      verdict: row.verdict,
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
 * The forwards of a row.
 * @param {Row} row
 * @param {{ offset: number, token: number, text: string }[]} tokens
 * @returns {Step[]}
 */
function stepsOfRow(row, tokens) {
  const drafts = draftsOf(row);
  /** @type {Step[]} */
  const steps = Array.from({ length: row.forwards }, (_, step) => ({
    commits: [],
    erased: [],
    mean_entropy: row.mean_entropy?.[step],
    draft: drafts[step],
  }));
  if (!row.events) {
    for (const token of tokens) {
      const step = row.commit_step[token.offset];
      if (step >= 0) steps[step].commits.push({ ...token, ...beliefOf(row, token.offset) });
    }
    return steps;
  }
  row.events.forEach(([step, offset, token], at) => {
    const isLast = row.commit_step[offset] === step && row.generated_ids[offset] === token;
    if (token < 0) steps[step].erased?.push(offset);
    else if (isLast) steps[step].commits.push({ ...tokens[offset], ...beliefOf(row, offset) });
    else steps[step].commits.push({ offset, token, text: row.event_texts?.[at] ?? `#${token}` });
  });
  return steps;
}

/**
 * @param {Row} row
 * @param {number} offset
 * @returns {Belief}
 */
function beliefOf(row, offset) {
  return {
    logp: row.logp?.[offset],
    entropy: row.entropy?.[offset],
    margin: row.margin?.[offset],
    score: row.score?.[offset],
    runner_up: row.runner_up?.[offset],
    terms: Object.fromEntries(Object.entries(row.terms ?? {}).map(([name, values]) => [name, values[offset]])),
  };
}

/**
 * The texts of the drafts, step by step.
 * @param {Row} row
 * @returns {string[][]}
 */
function draftsOf(row) {
  /** @type {Map<number, string>} */
  const texts = new Map(row.generated_ids.map((id, at) => [id, row.generated_texts?.[at] ?? `#${id}`]));
  for (const [id, text] of Object.entries(row.draft_texts ?? {})) texts.set(Number(id), text);
  /** @param {number} id */
  const textOf = (id) => (id < 0 ? "" : (texts.get(id) ?? `#${id}`));
  if (row.drafts) return row.drafts.map((draft) => draft.map(textOf));
  const now = new Array(row.generated_ids.length).fill("");
  return (row.draft_changes ?? []).map((changes) => {
    for (let at = 0; at < changes.length; at += 2) now[changes[at]] = textOf(changes[at + 1]);
    return now.slice();
  });
}

/**
 * The offsets of a span of characters. Characters are code points, as in Python.
 * @param {[number, number] | null | undefined} span
 * @param {string[]} texts
 */
function offsetsOf(span, texts) {
  /** @type {Set<number>} */
  const found = new Set();
  let at = 0;
  texts.forEach((text, offset) => {
    const size = Array.from(text).length;
    if (span && at < span[1] && at + size > span[0]) found.add(offset);
    at += size;
  });
  return found;
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
