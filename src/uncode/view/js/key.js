/** What the marks of a view mean: the shades, the signs, and where the traces first differ. */

import { COLOURS } from "./colour.js";
import { el } from "./dom.js";
import { quoted, visible } from "./text.js";

/** @typedef {import("./colour.js").Colouring} Colouring */
/** @typedef {import("./model.js").TraceModel} TraceModel */

/** Samplers that a sentence names before it says "and 3 more". */
const MAX_NAMES = 3;

/** @param {Colouring} colouring */
export function shadeKey(colouring) {
  const shades = colouring.legend().map(({ shade, label }) => el("span", { class: `t swatch s${shade}` }, label));
  return [el("span", { class: "what" }, COLOURS[colouring.name]), ...shades];
}

/**
 * The signs that these traces use.
 * @param {TraceModel[]} models
 * @param {number | null} divergence
 */
export function signKey(models, divergence) {
  const cells = models.flatMap((model) => model.cells.concat(model.start));
  /** @type {HTMLElement[]} */
  const found = [];
  /** @type {(isThere: boolean, name: string, sign: string, meaning: string) => void} */
  const add = (isThere, name, sign, meaning) => {
    if (isThere) found.push(el("span", {}, el("span", { class: `t ${name}` }, sign), ` ${meaning}`));
  };
  add(true, "masked", "ab", "masked");
  add(cells.some((cell) => cell.kind === "given"), "given", "ab", "given");
  add(cells.some((cell) => cell.isEos), "eos", "∎", "EOS");
  add(cells.some((cell) => cell.kind === "filled"), "filled", "∎", "filled by the stop rule");
  add(models.some((model) => model.points.some((point) => point.isErasure)), "erased", "ab", "erased");
  const isForced = models.some((model) => model.cells.some((cell) => model.isForced(cell)));
  add(isForced, "forced", "ab", "the only token that the constraint allows");
  add(models.some((model) => model.answer.size > 0), "answer", "ab", "answer");
  add(divergence !== null, "divergence", "ab", "first difference");
  return found;
}

/**
 * Which token each trace has at the first difference. Traces with the same token are named together.
 * @param {TraceModel[]} models
 * @param {number} offset
 */
export function divergenceText(models, offset) {
  /** @type {Map<string, TraceModel[]>} */
  const sides = new Map();
  for (const model of models) {
    const { text } = model.cells[offset];
    sides.set(text, [...(sides.get(text) ?? []), model]);
  }
  const texts = Array.from(sides, ([text, same]) => {
    const { step } = same[0].cells[offset];
    const names = listed(same.map((model) => visible(model.title)));
    if (same.length > 1) return `${names} have ${quoted(text)}`;
    return `${names} has ${quoted(text)}${step >= 0 ? ` (step ${step})` : ""}`;
  });
  return `First difference at offset ${offset}: ${texts.join(", ")}.`;
}

/** @param {string[]} names */
function listed(names) {
  if (names.length === 1) return names[0];
  const shown = names.length > MAX_NAMES ? MAX_NAMES - 1 : names.length - 1;
  const last = names.length > MAX_NAMES ? `${names.length - shown} more` : names[shown];
  return `${names.slice(0, shown).join(", ")} and ${last}`;
}
