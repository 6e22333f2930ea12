/** The live page: asks the server what there is, and makes the form. */

import { el } from "../../../view/js/dom.js";
import { helpDialog, helpTable, WORDS, restoreTheme, toggleTheme, toolButton } from "../../../view/js/page_tools.js";
import { Api, ApiError } from "./api.js";
import { askForKey } from "./key_dialog.js";
import { Workbench } from "./workbench.js";

const KEYS = [
  ["Ctrl Enter", "decode"],
  ["Esc", "stop the decode"],
  ["Ctrl G", "a gap at the cursor"],
  ["Space", "play or pause the replay"],
  ["← →", "one step back or forward"],
  ["Home End", "first or last step"],
  ["1 … 5", "colour by commit time, confidence, entropy, score, triviality"],
  ["T", "light or dark"],
  ["?", "this help"],
];

const SAMPLERS = [
  ["sampler", "the rule that decides which masked positions are written next, and how many of them per forward"],
  ["threshold", "commits every position that is sure enough, so that fewer forwards are needed"],
  ["prior", "uncode and its relatives weigh the confidence by the position and by how rare the token is"],
  ["remasker", "takes tokens back, so that they are written again; remdm has one"],
  ["of this model", "a sampler file in the model's folder: it is complete and takes no options"],
  ["legacy", "a published program as it was released, its bugs included"],
];

/**
 * What the server has. A server with an API key is asked again with the reader's.
 * @param {Api} api
 * @returns {Promise<[any[], any[]]>}
 */
async function ask(api) {
  for (;;) {
    try {
      return await Promise.all([api.list("v1/models"), api.list("v1/samplers")]);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
      api.key = await askForKey(api.key ? error.message : "");
    }
  }
}

async function start() {
  const help = document.body.appendChild(helpDialog({ Samplers: SAMPLERS, Words: WORDS, Keys: KEYS }));
  document.querySelector(".tools")?.append(
    el("a", { href: "docs" }, "API"),
    toolButton("Light or dark", "◐", toggleTheme),
    toolButton("Help", "?", () => help.showModal()),
  );
  const place = /** @type {HTMLElement} */ (document.querySelector("main"));
  const api = new Api();
  try {
    const [models, samplers] = await ask(api);
    const bench = new Workbench(api, models[0], samplers);
    place.replaceChildren(bench.element);
    const summaries = samplers.map(({ id, summary }) => [id, summary]);
    help.append(helpTable("All samplers", summaries));
    document.querySelector("h1")?.append(el("span", { class: "model" }, factsOf(models[0])));
    document.title = `uncode · ${models[0].id}`;
    document.addEventListener("keydown", (event) => handleKey(event, bench, help));
    bench.prompt.changed(); // its size is known now that it is in the page
    bench.restore(location.hash);
    addEventListener("hashchange", () => bench.restore(location.hash));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    place.replaceChildren(el("p", { class: "problem", role: "alert" }, message));
  }
}

/** @param {import("./api.js").Model} model */
function factsOf({ id, origin, context }) {
  return [id, origin?.weights, origin?.dtype, context && `context ${context}`].filter(Boolean).join(" · ");
}

/**
 * @param {KeyboardEvent} event
 * @param {Workbench} bench
 * @param {HTMLDialogElement} help
 */
function handleKey(event, bench, help) {
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (bench.handleKey(event)) return event.preventDefault();
  const isTyping = event.target instanceof Element && event.target.matches("textarea, input, select");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?") help.showModal();
  else if (event.key === "t" || event.key === "T") toggleTheme();
  else if (event.target instanceof Node && bench.results.element.contains(event.target)) return;
  else if (!bench.results.view?.handleKey(event)) return;
  event.preventDefault();
}

restoreTheme();
start();
