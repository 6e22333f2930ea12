/** One decode on the server, as steps for the view. */

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("../../../view/js/model.js").Belief} Belief */
/** @typedef {import("../../../view/js/model.js").Step} Step */
/** @typedef {import("../../../view/js/model.js").Token} Token */
/** @typedef {import("../../../view/js/row.js").Row} Row */

/** @typedef {{ length: number, given: Token[], eos_ids: number[] }} Opening */
/** @typedef {{ step: number, offset: number, token: number | null, text: string } & Belief} Change */

export class DecodeRun {
  /**
   * @param {Api} api
   * @param {string} path
   * @param {object} body
   */
  constructor(api, path, body) {
    this.abort = new AbortController();
    const asked = { ...body, stream: true, commits: true, trace: true };
    this.chunks = api.stream(path, asked, this.abort.signal);
    /** The row of the trace, when the decode is finished. @type {Row | null} */
    this.row = null;
    this.text = "";
    /** Why it could not start. @type {unknown} */
    this.error = null;
    this.began = performance.now();
    this.seconds = 0;
  }

  /**
   * The span before the first forward.
   * @returns {Promise<Opening>}
   */
  async open() {
    try {
      for (;;) {
        const { value, done } = await this.chunks.next();
        if (done) throw new Error("the server did not describe the canvas: its version is not the page's.");
        if (value.choices[0]?.canvas) return value.choices[0].canvas;
      }
    } catch (error) {
      this.error = error;
      throw error;
    }
  }

  /**
   * The forwards as they come. A forward that changes nothing is not sent, but counts as a step.
   * @returns {AsyncGenerator<Step>}
   */
  async *steps() {
    let next = 0;
    for await (const chunk of this.chunks) {
      const choice = chunk.choices[0];
      if (!choice) continue;
      this.text += choice.text ?? choice.delta?.content ?? "";
      for (const step of stepsOf(choice.commits ?? [], choice.mean_entropy)) {
        for (; next < step.step; next += 1) yield { commits: [] };
        yield step;
        next += 1;
      }
      if (choice.trace) this.row = choice.trace;
    }
    this.seconds = (performance.now() - this.began) / 1000;
  }

  /** Stop the decode: the server drops the row. */
  stop() {
    this.abort.abort();
  }
}

/**
 * The changes of a chunk, forward by forward.
 * @param {Change[]} changes
 * @param {number | null} [meanEntropy]
 * @returns {(Step & { step: number })[]}
 */
export function stepsOf(changes, meanEntropy = null) {
  /** @type {Map<number, Step & { step: number, erased: number[] }>} */
  const steps = new Map();
  for (const { step, offset, token, text, logp, entropy } of changes) {
    const found = steps.get(step) ?? { step, commits: [], erased: [], mean_entropy: meanEntropy };
    steps.set(step, found);
    if (token === null) found.erased.push(offset);
    else found.commits.push({ offset, token, text, logp, entropy });
  }
  return Array.from(steps.values());
}
