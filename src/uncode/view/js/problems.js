/** The problems of a page: what the list knows of each, how it is searched and sorted. */

/**
 * A trace in the list.
 * @typedef {object} Entry
 * @property {string} sampler
 * @property {boolean | null} right null if nobody graded it
 * @property {number} forwards
 * @property {number} length tokens before EOS
 */

/** @typedef {{ label: string, task: string, prompt: string, traces: Entry[] }} Problem */

/**
 * @typedef {object} Query
 * @property {string} words all of them must occur in the name, the prompt or the samplers
 * @property {string} task empty: any
 * @property {string[]} rightIn samplers that must be right
 * @property {string[]} wrongIn samplers that must be wrong
 */

/** @typedef {"given" | "task" | "right" | "forwards" | "length"} Order */

/** @type {Record<Order, string>} */
export const ORDERS = {
  given: "as in the files",
  task: "task",
  right: "fewest right",
  forwards: "most forwards",
  length: "longest",
};

/**
 * @param {Problem} problem
 * @param {Query} query
 */
export function matches(problem, query) {
  if (query.task && problem.task !== query.task) return false;
  /** @type {(samplers: string[], right: boolean) => boolean} */
  const all = (samplers, right) =>
    samplers.every((name) => problem.traces.some((trace) => trace.sampler === name && trace.right === right));
  if (!all(query.rightIn, true) || !all(query.wrongIn, false)) return false;
  const text = searchText(problem);
  return query.words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Texts are joined once, not at every key. @type {WeakMap<Problem, string>} */
const searchTexts = new WeakMap();

/** @param {Problem} problem */
function searchText(problem) {
  const known = searchTexts.get(problem);
  if (known !== undefined) return known;
  const text = [problem.label, problem.prompt, ...problem.traces.map((trace) => trace.sampler)].join(" ").toLowerCase();
  searchTexts.set(problem, text);
  return text;
}

/**
 * The numbers of the problems in an order. Problems that are equal in it keep their order.
 * @param {Problem[]} problems
 * @param {Order} order
 */
export function sorted(problems, order) {
  const numbers = problems.map((_, at) => at);
  if (order === "task") return numbers.sort((a, b) => compare(problems[a].task, problems[b].task));
  /** @type {(problem: Problem) => number} */
  const key = (problem) => {
    if (order === "right") return problem.traces.filter((trace) => trace.right).length;
    if (order === "forwards") return -Math.max(...problem.traces.map((trace) => trace.forwards));
    if (order === "length") return -Math.max(...problem.traces.map((trace) => trace.length));
    return 0;
  };
  const keys = problems.map(key);
  return numbers.sort((a, b) => keys[a] - keys[b]);
}

/**
 * The pair of samplers for the one-click filter: the first is wrong, the second right. Null if no two are graded.
 * @param {Problem[]} problems
 * @returns {[string, string] | null}
 */
export function samplerPair(problems) {
  const graded = problems.flatMap((problem) => problem.traces).filter((trace) => trace.right !== null);
  const names = distinct(graded, "sampler");
  return names.length < 2 ? null : preferredPair(names);
}

/**
 * Confidence and Uncode, which most readers compare; else the first and the last.
 * @param {string[]} names at least two
 * @returns {[string, string]}
 */
export function preferredPair(names) {
  const first = names.includes("confidence") ? "confidence" : names[0];
  const others = names.filter((name) => name !== first);
  return [first, others.find((name) => name.startsWith("uncode")) ?? others[others.length - 1]];
}

/**
 * The values of a property, each once.
 * @template {string} K
 * @param {Record<K, string>[]} items
 * @param {K} name
 * @returns {string[]}
 */
export function distinct(items, name) {
  return Array.from(new Set(items.map((item) => item[name])));
}

/**
 * @param {string} a
 * @param {string} b
 */
function compare(a, b) {
  return a < b ? -1 : Number(a > b);
}
