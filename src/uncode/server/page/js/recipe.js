/** The command line and the Python that repeat a decode without the server. */

import { visible } from "../../../view/js/text.js";

/** @typedef {import("./api.js").Origin} Origin */
/** @typedef {import("./settings_card.js").Chosen} Chosen */
/** @typedef {{ prompt_ids?: number[], canvas_ids?: number[], sampler?: object }} Given what a trace was made from */
/** @typedef {import("../../../view/js/row.js").Row & Given} Row */

/**
 * What was decoded. `length` is null where the gaps have their sizes.
 * @typedef {object} Recipe
 * @property {Origin} origin
 * @property {(string | number)[]} parts texts and sizes of gaps
 * @property {boolean} isChat
 * @property {Chosen} chosen
 * @property {number | null} length
 * @property {import("./constraint_field.js").Constraint | null} constraint
 * @property {number} seed
 * @property {boolean} stopsAtEos
 * @property {Row | null} row the trace, for what has no name
 */

/** In a text of the library this would be a gap. The server reads it as text. */
const MARKER = /<mask:[^<>]*>/;

/**
 * The command line. A text that holds a marker cannot be given there.
 * @param {Recipe} recipe
 */
export function commandLine(recipe) {
  const { origin, chosen, parts } = recipe;
  if (hasMarker(parts)) return "# The command line would read the marker in this text as a gap: use the Python.";
  const { regex = null, choices = [], json_schema: schema } = /** @type {any} */ (recipe.constraint ?? {});
  if (recipe.constraint === "json" || schema !== undefined) {
    return "# The command line takes a JSON schema from a file: use the Python.";
  }
  const words = ["uncode", "decode"];
  /** @type {(name: string, value: string | number | null) => void} */
  const add = (name, value) => void (value !== null && words.push(name, quoted(String(value))));
  add("--model", origin.model);
  add("--revision", origin.revision);
  add("--dtype", origin.dtype);
  add("--weights", origin.weights);
  add("--guidance", origin.guidance || null);
  add("--sampler", chosen.id ?? chosen.title);
  for (const [name, value] of Object.entries(chosen.changed)) add("--set", `${name}=${value}`);
  add("--frequency", chosen.takesTable ? origin.frequency : null);
  add("--length", recipe.length);
  add("--seed", recipe.seed);
  add("--regex", regex);
  for (const choice of choices) add("--choice", choice);
  if (recipe.isChat) words.push("--chat");
  if (!recipe.stopsAtEos && recipe.length !== null) words.push("--whole");
  const text = textWithMarkers(parts);
  return `${words.join(" ")} ${text.startsWith("-") ? "-- " : ""}${quoted(text)}`;
}

/**
 * The Python.
 * @param {Recipe} recipe
 */
export function python(recipe) {
  const { origin } = recipe;
  const arguments_ = [literal(origin.model)];
  for (const name of /** @type {const} */ (["revision", "dtype", "weights"])) {
    if (origin[name]) arguments_.push(`${name}=${literal(origin[name])}`);
  }
  const lines = ["import uncode", "", `denoiser = uncode.load(${arguments_.join(", ")})`];
  if (origin.guidance) lines.push(`denoiser = uncode.Guided(denoiser, ${origin.guidance})`);
  if (hasMarker(recipe.parts)) return [...lines, ...fromIds(recipe), ""].join("\n");
  const sampler = samplerOf(recipe);
  if (sampler.includes("(")) lines.push(`sampler = ${sampler}`);
  const given = [`sampler=${sampler.includes("(") ? "sampler" : sampler}`];
  if (recipe.length !== null) given.push(`length=${recipe.length}`);
  given.push(`seed=${recipe.seed}`);
  if (!recipe.stopsAtEos) given.push("stop_at_eos=False");
  if (recipe.constraint) given.push(`constraint=${constraintOf(recipe.constraint)}`);
  const text = literal(textWithMarkers(recipe.parts));
  lines.push(`prompt = ${recipe.isChat ? `[{"role": "user", "content": ${text}}]` : text}`);
  lines.push(`print(uncode.generate(denoiser, prompt, ${given.join(", ")}))`, "");
  return lines.join("\n");
}

/**
 * The sampler as an expression: a preset, the name of one of the model's own, or data.
 * @param {Recipe} recipe
 */
function samplerOf({ origin, chosen, row }) {
  const table = origin.frequency ? literal(origin.frequency) : "denoiser.frequency";
  if (chosen.id === null) return `uncode.Sampler.from_dict(${literal(row?.sampler ?? {})}, frequency=${table})`;
  const isPlain = !Object.keys(chosen.changed).length && !(chosen.takesTable && origin.frequency);
  if (isPlain) return literal(chosen.id);
  const given = Object.entries(chosen.changed).map(([name, value]) => `${name}=${literal(value)}`);
  if (chosen.takesTable) given.unshift(`frequency=${table}`);
  return `uncode.${chosen.id.includes(".") ? "" : "presets."}${chosen.id}(${given.join(", ")})`;
}

/**
 * The constraint as an expression.
 * @param {import("./constraint_field.js").Constraint} constraint
 */
function constraintOf(constraint) {
  if (typeof constraint === "string") return `uncode.constraint(${literal(constraint)})`;
  const [[name, value]] = Object.entries(constraint);
  return `uncode.constraint(${name}=${literal(value)})`;
}

/**
 * The decode from token ids, for texts that the library would read otherwise.
 * @param {Recipe} recipe
 */
function fromIds({ origin, length, constraint, seed, row }) {
  const ids = [...(row?.prompt_ids ?? []), ...(row?.canvas_ids ?? [])];
  const rule = constraint ? `, constraint=${constraintOf(constraint)}` : "";
  const table = origin.frequency ? literal(origin.frequency) : "denoiser.frequency";
  return [
    `sampler = uncode.Sampler.from_dict(${literal(row?.sampler ?? {})}, frequency=${table})`,
    `canvas = uncode.Canvas.infill([${literal(ids)}], mask_id=denoiser.mask_id)`,
    `trace = uncode.decode(denoiser, canvas, sampler, seed=${seed}${rule})`,
    `ids = trace.${length === null ? "tokens" : "generated"}[0].tolist()`,
    ...(length === null ? [] : ["ends = [at for at, one in enumerate(ids) if one in denoiser.eos_ids]"]),
    ...(length === null ? [] : ["ids = ids[: ends[0]] if ends else ids"]),
    "print(denoiser.tokenizer.decode(ids, skip_special_tokens=True))",
  ];
}

/** @param {(string | number)[]} parts */
function hasMarker(parts) {
  return parts.some((part) => typeof part === "string" && MARKER.test(part));
}

/** @param {(string | number)[]} parts */
function textWithMarkers(parts) {
  return parts.map((part) => (typeof part === "number" ? `<mask:${part}>` : part)).join("");
}

/**
 * A word for a shell.
 * @param {string} text
 */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * A value as Python writes it. Characters that are invisible or change the order of others are escapes.
 * @param {any} value
 * @returns {string}
 */
export function literal(value) {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "string") return visible(JSON.stringify(value));
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([key, one]) => `${literal(key)}: ${literal(one)}`).join(", ")}}`;
  }
  return String(value);
}
