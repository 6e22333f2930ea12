/** The server's API: the model, its samplers, and decodes as they run. */

/**
 * An option of a sampler. A slider that ends at null ends at the number of tokens to generate.
 * @typedef {object} Option
 * @property {string} name
 * @property {"int" | "float" | "bool" | "choice"} kind
 * @property {any} default null where the option is off
 * @property {string} meaning
 * @property {string[]} [choices]
 * @property {{ min: number, max: number | null, step: number }} [slider]
 */

/**
 * @typedef {object} Sampler
 * @property {string} id
 * @property {string} summary
 * @property {string} source
 * @property {Option[]} options
 * @property {boolean} takes_table
 * @property {boolean} needs_table
 */

/**
 * How the model was loaded.
 * @typedef {object} Origin
 * @property {string} model
 * @property {string | null} revision
 * @property {string | null} dtype
 * @property {string | null} weights
 * @property {number} guidance
 * @property {string | null} frequency
 */

/**
 * @typedef {object} Model
 * @property {string} id
 * @property {number | null} context
 * @property {boolean} has_chat_template
 * @property {boolean} has_frequency_table
 * @property {string} default_sampler
 * @property {Record<string, any>} default_options
 * @property {number} default_length
 * @property {string} example
 * @property {Origin | null} origin
 */

/** An answer of the server that is an error. The message is one sentence. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} [status]
   */
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

export class Api {
  constructor() {
    /** It is kept in memory alone, and forgotten with the page. */
    this.key = "";
  }

  /**
   * The entries of a list.
   * @param {string} path
   * @returns {Promise<any[]>}
   */
  async list(path) {
    return (await (await this.send(path, {})).json()).data;
  }

  /**
   * The chunks of a streamed answer.
   * @param {string} path
   * @param {object} body
   * @param {AbortSignal} signal
   * @returns {AsyncGenerator<any>}
   */
  async *stream(path, body, signal) {
    const headers = { "Content-Type": "application/json" };
    const response = await this.send(path, { method: "POST", headers, body: JSON.stringify(body), signal });
    for await (const data of serverSent(textOf(response))) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ApiError(chunk.error.message);
      yield chunk;
    }
    throw new ApiError("the connection ended before the answer was complete: decode again.");
  }

  /**
   * @param {string} path relative, so that the page works behind a proxy with a prefix
   * @param {RequestInit} init
   */
  async send(path, init) {
    const headers = new Headers(init.headers);
    if (this.key) headers.set("Authorization", `Bearer ${this.key}`);
    /** @type {Response} */
    let response;
    try {
      response = await fetch(path, { ...init, headers, credentials: "omit" });
    } catch (error) {
      if (error instanceof Error && error.name === "AbortError") throw error;
      throw new ApiError("the server cannot be reached: check that it runs.");
    }
    if (!response.ok) throw await errorOf(response);
    return response;
  }
}

/**
 * The error of an answer, in the words of the server.
 * @param {Response} response
 */
async function errorOf(response) {
  const body = await response.json().catch(() => null);
  const message = body?.error?.message ?? `the server answered with status ${response.status}: try again.`;
  return new ApiError(String(message), response.status);
}

/**
 * @param {Response} response
 * @returns {AsyncGenerator<string>}
 */
async function* textOf(response) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

/**
 * The data of server-sent events. Half an event waits for its rest. Comments, which keep a connection open, are
 * skipped.
 * @param {AsyncIterable<string>} parts
 * @returns {AsyncGenerator<string>}
 */
export async function* serverSent(parts) {
  let rest = "";
  for await (const part of parts) {
    const events = (rest + part).split(/\r?\n\r?\n/);
    rest = events.pop() ?? "";
    for (const event of events) {
      const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
      if (lines.length) yield lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
    }
  }
}
