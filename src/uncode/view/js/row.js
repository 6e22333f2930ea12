/** A row of a trace file: its forwards, its drafts, its answer. */

/** @typedef {import("./model.js").Belief} Belief */
/** @typedef {import("./model.js").Step} Step */
/** @typedef {import("./model.js").Verdict} Verdict */

/**
 * A row of a trace, as `Trace.row` writes it.
 * @typedef {object} Row
 * @property {string} [title]
 * @property {Verdict | null} [verdict]
 * @property {string[]} [summary]
 * @property {string} [prompt_text]
 * @property {string} [lead] the text before the first gap
 * @property {number[]} generated_ids
 * @property {string[]} [generated_texts]
 * @property {number[]} commit_step
 * @property {number} forwards probes included
 * @property {number[]} [probes] of each step
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
 * @property {object} [constraint] what the text of the row is
 */

/**
 * The steps of a row.
 * @param {Row} row
 * @param {{ offset: number, token: number, text: string }[]} tokens
 * @returns {Step[]}
 */
export function stepsOfRow(row, tokens) {
  const drafts = draftsOf(row);
  const probes = (row.probes ?? []).reduce((sum, count) => sum + count, 0);
  /** @type {Step[]} */
  const steps = Array.from({ length: row.forwards - probes }, (_, step) => ({
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
export function offsetsOf(span, texts) {
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
