/** Feeds a view from a decode that runs. */

/** @typedef {import("./model.js").Step} Step */
/** @typedef {import("./view.js").TraceView} TraceView */

/**
 * Append every step of a source, for example of a server's events, until it ends.
 * @param {TraceView} view
 * @param {AsyncIterable<Step>} steps
 * @param {number} [at] which trace of the view
 */
export async function follow(view, steps, at = 0) {
  for await (const step of steps) view.append(step, at);
  view.finish([], at);
}

/**
 * The values of a stream of JSON lines. Half a line waits for its rest.
 * @param {AsyncIterable<string>} parts
 * @returns {AsyncGenerator<any>}
 */
export async function* jsonLines(parts) {
  let rest = "";
  for await (const part of parts) {
    const lines = (rest + part).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim()) yield JSON.parse(line);
  }
  if (rest.trim()) yield JSON.parse(rest);
}
