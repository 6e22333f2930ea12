/** Feeds a view from a decode that runs. */

/** @typedef {import("./model.js").Step} Step */
/** @typedef {import("./view.js").TraceView} TraceView */

/** @typedef {import("./model.js").Token} Token */
/** @typedef {Step & { filled?: Token[] }} StreamStep the last step may carry the tokens that the stop rule filled */

/**
 * Append every step of a source, for example of a server's events, until it ends. A source that was aborted
 * (`AbortController`) cancels the trace; any other error fails it.
 * @param {Pick<TraceView, "append" | "finish" | "cancel" | "fail">} view
 * @param {AsyncIterable<StreamStep>} steps
 * @param {number} [at] which trace of the view
 */
export async function follow(view, steps, at = 0) {
  /** @type {Token[]} */
  const filled = [];
  try {
    for await (const step of steps) {
      view.append(step, at);
      filled.push(...(step.filled ?? []));
    }
  } catch (error) {
    if (error instanceof Error && error.name === "AbortError") view.cancel(at);
    else view.fail(error instanceof Error ? error.message : String(error), at);
    return;
  }
  view.finish(filled, at);
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
